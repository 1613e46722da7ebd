import Foundation
import Testing

/// The code in the README, in the articles and in the comments is code of this target, which is compiled, and mostly
/// run.
struct DocumentationTests {
  private static let snippets = Result {
    try Repository.files(in: "Tests/DocumentationTests/Snippets", ending: "swift")
  }

  @Test(arguments: try Repository.pages())
  func everyBlockOfCodeIsInASnippet(of page: SourceText) throws {
    let snippets = try Self.snippets.get()
    for block in page.codeBlocks where !snippets.contains(where: block.isIn) {
      Issue.record(
        """
        \(page.path):\(block.firstLine): no file of Snippets has this code, paragraph by paragraph:
        \(block.paragraphs.map { $0.joined(separator: "\n") }.joined(separator: "\n\n"))
        """
      )
    }
  }

  @Test func thePagesAreFound() throws {
    let paths = try Repository.pages().map(\.path)
    #expect(paths.contains("README.md"))
    #expect(paths.contains("Sources/Operations/Operations.docc/Operations.md"))
    #expect(paths.contains("Sources/Operations/Operation/AsyncOperation.swift"))
    #expect(try Repository.pages().flatMap(\.codeBlocks).count > 60)
  }

  // MARK: The comparison itself

  private let page = SourceText(
    path: "page.md",
    text: """
      Words.

      ```swift
      queue.run {   // a comment
        first()
      }

      second()
      ```

      ```console
      $ swift test
      ```
      """
  )

  private func isFound(in text: String) throws -> Bool {
    try #require(page.codeBlocks.first).isIn(SourceText(path: "snippet.swift", text: text))
  }

  @Test func onlySwiftIsCode() {
    #expect(page.codeBlocks.map(\.paragraphs) == [[["queue.run {   // a comment", "  first()", "}"], ["second()"]]])
    #expect(page.codeBlocks.map(\.firstLine) == [4])
  }

  @Test func aCommentOfTheSourceIsAPage() {
    let source = SourceText(
      path: "A.swift",
      text: """
        /// Words.
        ///
        /// ```swift
        /// first()
        /// ```
          /// ```
          /// a ─▶ b
          /// ```
        """
    )
    #expect(source.codeBlocks.map(\.paragraphs) == [[["first()"]]])
  }

  @Test func paragraphsMayBeIndentedEachByItself() throws {
    #expect(try isFound(in: "func f() {\n  queue.run {  // a comment\n    first()\n  }\n}\n\n    second()"))
  }

  @Test func theOrderTheLinesAndTheIndentationHaveToBeTheSame() throws {
    #expect(try !isFound(in: "second()\n\nqueue.run {  // a comment\n  first()\n}"))
    #expect(try !isFound(in: "queue.run {  // a comment\n  first()\n  more()\n}\nsecond()"))
    #expect(try !isFound(in: "queue.run {  // a comment\nfirst()\n}\nsecond()"))
    #expect(try !isFound(in: "queue.run {  // another comment\n  first()\n}\nsecond()"))
    #expect(try !isFound(in: "queue.run {  // a comment\n  first()\n}"))
  }
}
