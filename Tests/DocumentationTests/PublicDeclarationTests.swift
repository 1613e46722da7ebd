import Testing

/// Whatever is public says what it is for.
struct PublicDeclarationTests {
  @Test(arguments: try Repository.files(in: "Sources", ending: "swift"))
  func everyPublicDeclarationHasAComment(in file: SourceText) {
    for number in file.undocumentedDeclarations {
      Issue.record("\(file.path):\(number): \(file.lines[number - 1])")
    }
  }

  @Test func aMissingCommentIsSeen() {
    let source = SourceText(
      path: "A.swift",
      text: """
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
    )
    #expect(source.undocumentedDeclarations == [6, 13, 18])
  }
}

extension SourceText {
  /// What says no more than the protocol, or the superclass, that asks for it.
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
