import Foundation

/// The files that these tests read: those of the checkout they were compiled from.
enum Repository {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  /// Whatever may show code to those who read it.
  static func pages() throws -> [SourceText] {
    try ["README.md", "Examples/README.md", ".github/CONTRIBUTING.md"].map(file)
      + files(in: "Sources", ending: "md") + files(in: "Sources", ending: "swift")
  }

  static func files(in folder: String, ending: String) throws -> [SourceText] {
    let base = root.appending(path: folder)
    return try FileManager.default.subpathsOfDirectory(atPath: base.path).sorted()
      .filter { $0.hasSuffix("." + ending) }
      .map { try file("\(folder)/\($0)") }
  }

  static func file(_ path: String) throws -> SourceText {
    SourceText(path: path, text: try String(contentsOf: root.appending(path: path), encoding: .utf8))
  }
}
