import Testing

/// References between the folders of `Sources/Operations` run downwards.
struct LayerTests {
  /// From the bottom up. A file may name types of its own layer and of those before it.
  private static let layers = [
    "Support", "Errors", "Operation, Dependencies", "Values", "Groups", "Queues", "Exclusivity", "Diagnostics",
  ]
  /// The other half of the package, which shares only these two layers with the first.
  private static let belowScheduling = ["Support", "Errors", "Scheduling"]

  private static func folder(of file: SourceText) -> String { String(file.path.split(separator: "/")[2]) }

  private static func mayUse(_ other: String, in folder: String) -> Bool {
    if folder == "Scheduling" { return belowScheduling.contains(other) }
    guard let layer = layers.firstIndex(where: { $0.contains(folder) }) else { return false }
    return layers[...layer].contains { $0.contains(other) }
  }

  @Test func noFileNamesATypeOfAHigherLayer() throws {
    let files = try Repository.files(in: "Sources/Operations", ending: "swift")
    let declaration = #/^(?:[a-z@]\S* )*(?:class|struct|enum|protocol|actor|typealias) ([A-Z]\w*)/#
    var homes: [Substring: String] = [:]
    for file in files {
      for line in file.lines {
        if let match = line.firstMatch(of: declaration) { homes[match.1] = Self.folder(of: file) }
      }
    }
    #expect(homes.count > 100)
    for file in files {
      for (number, line) in file.lines.enumerated() {
        let code = line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line
        for word in code.matches(of: #/\b[A-Z]\w*/#).map(\.output) {
          guard let home = homes[word], !Self.mayUse(home, in: Self.folder(of: file)) else { continue }
          Issue.record("\(file.path):\(number + 1): \(word) belongs to \(home), which is a higher layer.")
        }
      }
    }
  }
}
