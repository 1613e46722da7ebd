import Testing

/// Rules for every file of Sources.
struct SourceTests {
  // MARK: Comments

  @Test(arguments: try Repository.files(in: "Sources", ending: "swift"))
  func everyPublicDeclarationHasAComment(in file: SourceText) {
    for number in file.undocumentedDeclarations { Issue.record("\(file.path):\(number): \(file.lines[number - 1])") }
  }

  @Test func aMissingCommentIsSeen() {
    let text = """
      public import Foundation

      /// A comment.
      @frozen
      public struct A: CustomStringConvertible {
        public let a: Int
        /// A comment.
        @inlinable
        public init() {}

        public var description: String { "" }
        @inlinable
        open func b() {}
        public override func c() {}
        public static func == (left: Self, right: Self) -> Bool { true }
        /// A comment.

        public nonisolated static let d = 1
      }
      """
    #expect(SourceText(path: "A.swift", text: text).undocumentedDeclarations == [6, 13, 18])
  }

  // MARK: Locks

  /// A generic type stores a closure in another calling convention. Each access in place converts the closure and
  /// stores the result, so that a call takes as many steps as there were accesses. A struct stores it as it is.
  @Test(arguments: try Repository.files(in: "Sources", ending: "swift"))
  func noLockHoldsABareClosure(in file: SourceText) {
    for number in file.lockedClosures { Issue.record("\(file.path):\(number): \(file.lines[number - 1])") }
  }

  @Test func aLockedClosureIsSeen() {
    let text = """
      typealias Body = @Sendable (Int) -> Void
      let a: Locked<(() -> Void)?>
      let b = Locked<@Sendable () -> Void>({})
      let c = Locked<(Int, () -> Void)>((1, {}))
      let d: Locked<Body?>
      let e: Locked<[Body]>
      let f: Locked<(Int, Int)>
      let g: Locked<State>
      """
    #expect(SourceText(path: "A.swift", text: text).lockedClosures == [2, 3, 4, 5])
  }

  // MARK: Layers

  /// From the bottom up. A file may name types of its own layer and of those before it.
  private static let layers = [
    ["Support"], ["Errors"],
    // The engine.
    ["Operation", "Dependencies", "Groups", "Exclusivity", "Diagnostics/Graph", "Diagnostics/Trace"],
    ["Values"], ["Groups/Retry"], ["Queues"], ["Diagnostics"],
  ]
  /// The other half of the package, which shares only two layers with the first.
  private static let besideScheduling = [["Support"], ["Errors"], ["Scheduling"]]

  private static func folder(of file: SourceText) -> String {
    file.path.split(separator: "/").dropFirst(2).dropLast().joined(separator: "/")
  }

  /// The innermost folder with a layer decides.
  private static func layer(of folder: String, in layers: [[String]]) -> Int? {
    let named = layers.joined().filter { folder == $0 || folder.hasPrefix($0 + "/") }
    return named.max { $0.count < $1.count }.flatMap { name in layers.firstIndex { $0.contains(name) } }
  }

  private static func mayUse(_ other: String, in folder: String) -> Bool {
    let layers = folder.hasPrefix("Scheduling") ? besideScheduling : layers
    guard let upper = layer(of: folder, in: layers), let lower = layer(of: other, in: layers) else { return false }
    return lower <= upper
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

extension SourceText {
  /// The numbers of the lines in which the value of a lock is a closure, or a tuple with one.
  fileprivate var lockedClosures: [Int] {
    let names = lines.compactMap { $0.firstMatch(of: #/\btypealias (\w+) = .*->/#)?.1 }
    return lines.indices.filter { index in
      guard let value = lines[index].firstMatch(of: #/\bLocked<(.*)/#)?.1 else { return false }
      let isFunction = ["(", "@"].contains(value.prefix(1)) && value.contains("->")
      return isFunction || names.contains(value.prefix { $0.isLetter })
    }
    .map { $0 + 1 }
  }

  /// Members whose documentation is that of a protocol or a superclass.
  private static let inherited = [
    " override ", " import ", " extension ", "var description:", "var errorDescription:", "static func == ",
    "static func < ",
    "func hash(into", "init(stringLiteral", "init(stringInterpolation", "init(from decoder", "func encode(to",
  ]

  /// The numbers of the lines with public declarations that no comment stands above.
  fileprivate var undocumentedDeclarations: [Int] {
    lines.indices.filter { index in
      let line = " " + lines[index].drop(while: \.isWhitespace)
      guard line.hasPrefix(" public ") || line.hasPrefix(" open func ") || line.hasPrefix(" open class ") else {
        return false
      }
      if Self.inherited.contains(where: line.contains) { return false }
      let above = lines[..<index].last { !$0.drop(while: \.isWhitespace).hasPrefix("@") }
      return above?.drop(while: \.isWhitespace).hasPrefix("///") != true
    }
    .map { $0 + 1 }
  }
}
