import Foundation
import Operations
import Testing

/// The code in the README, the articles and the doc comments is code of this target: compiled, and mostly run.
struct DocumentationTests {
  private static let snippets = Result {
    try Repository.files(in: "Tests/DocumentationTests/Snippets", ending: "swift").map(\.codeLines)
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

  #if os(macOS) || os(Linux)
  /// A snippet has other lines than its page. Those of the page are as the formatter leaves them, except that comments
  /// may be below each other.
  @Test func everyBlockOfCodeIsFormatted() async throws {
    func shape(_ lines: [Substring]) -> [[Substring]] {
      lines.map { line in [line.prefix { $0 == " " }] + line.split(separator: " ") }
    }
    let blocks = try Repository.pages().flatMap { page in page.codeBlocks.map { (page.path, $0) } }
    let files = blocks.enumerated().map { ("\($0).swift", $1.1.paragraphs.joined().joined(separator: "\n")) }
    try await withFiles(files) { folder in
      let configuration = Repository.root.appending(path: ".swift-format").path
      let errors = try await output(of: "swift format -r -i --configuration '\(configuration)' '\(folder.path)'")
      #expect(errors.isEmpty)
      for ((path, block), file) in zip(blocks, files) {
        let formatted = try String(contentsOf: folder.appending(path: file.0), encoding: .utf8)
        let isFormatted = shape(formatted.split(separator: "\n")) == shape(block.paragraphs.flatMap(\.self))
        #expect(isFormatted, "\(path):\(block.firstLine)")
      }
    }
  }
  #endif

  /// What the code of an article prints, or an error says, is in a test. The tests of two pages read their page instead.
  @Test func everyOutputIsInASnippet() throws {
    func words(_ lines: [some StringProtocol]) -> String {
      let words = lines.flatMap { $0.split { $0.isWhitespace || #"",\"#.contains($0) } }
      return words.joined(separator: " ")
    }
    let snippets = try Repository.files(in: "Tests/DocumentationTests/Snippets", ending: "swift")
      .map { words($0.lines) }
    for page in try Repository.files(in: "Sources/Operations/Operations.docc", ending: "md") {
      if ["DebuggingStalls.md", "Diagnostics.md"].contains(where: page.path.hasSuffix) { continue }
      for block in page.blocks(of: "") {
        let output = words(block.paragraphs.flatMap(\.self))
        #expect(snippets.contains { $0.contains(output) }, "\(page.path):\(block.firstLine)")
      }
    }
  }

  @Test func thePagesAreFound() throws {
    let paths = try Repository.pages().map(\.path)
    #expect(paths.contains("README.md"))
    #expect(paths.contains("Sources/Operations/Operations.docc/Operations.md"))
    #expect(paths.contains("Sources/Operations/Operation/AsyncOperation.swift"))
    #expect(try Repository.pages().flatMap(\.codeBlocks).count > 60)
  }

  @Test func everyTestThatAPageNamesExists() throws {
    let tests = try Repository.files(in: "Tests", ending: "swift").map { $0.lines.joined(separator: "\n") }
    let articles = try Repository.files(in: "Sources/Operations/Operations.docc", ending: "md")
    for page in try articles + [Repository.file(".github/CONTRIBUTING.md")] {
      for match in page.lines.joined(separator: "\n").matches(of: #/`(\w+Tests)\.(\w+)`/#) {
        let isFound = tests.contains { test in
          [" ", ":"].contains { test.contains("struct \(match.1)\($0)") } && test.contains("func \(match.2)(")
        }
        #expect(isFound, "\(page.path) names \(match.0)")
      }
    }
  }

  @Test func everyArticleHasTheNameOfItsTitle() throws {
    for page in try Repository.files(in: "Sources/Operations/Operations.docc", ending: "md") {
      let name = page.path.split(separator: "/").last?.dropLast(".md".count)
      let title = page.lines.first?.split(separator: "/").last?.drop { "# `".contains($0) }.filter {
        !" `".contains($0)
      }
      #expect(title?.lowercased() == name?.lowercased(), "\(page.path)")
    }
  }

  /// A reader has time for the first pages, and finds what only one page says.
  @Test func thePagesStayShort() throws {
    func words(_ page: SourceText) -> Int { page.lines.reduce(0) { $0 + $1.split(separator: " ").count } }
    let articles = "Sources/Operations/Operations.docc/"
    let first = try ["README.md", articles + "GettingStarted.md", articles + "FromTasks.md"].map(Repository.file)
    #expect(first.map(words).reduce(0, +) <= 2_600)
    let all = try Repository.files(in: articles, ending: "md").filter { !$0.path.contains("/Symbols/") }
    #expect(15...22 ~= all.count && all.map(words).reduce(0, +) <= 18_500)
  }

  /// A window of a reader, and of a page on a phone, cuts longer lines.
  @Test func linesOfCodeAreShort() throws {
    for page in try Repository.files(in: "Sources/Operations/Operations.docc", ending: "md") {
      for line in page.blocks().flatMap(\.paragraphs).joined() where line.count > 72 {
        Issue.record("\(page.path): \(line)")
      }
    }
  }

  /// The compiler confirms the rule “Sendable” of the page “Threading and cancellation”.
  @Test func theyAreSendable() {
    let types: [any Sendable.Type] = [
      AsyncOperation.self, OperationObserver.self, OperationCondition.self, InputPolicy.self, RetryDecision.self,
      Backoff.self, ExclusivityKey.self, ExclusivityPolicy.self, ExclusivityDomain.self, SerialScheduler.self,
      ScheduledEvent.self, EventCapacity.self, EventOrigin.self, MainDelivery.self,
      SchedulableObject<NSMutableArray>.self, SchedulerStatistics.self, SchedulerWatchdog.self,
      SchedulerViolation.self, OperationGraph.self, CriticalPath.self, StallReport.self, OperationTracer.self,
      OperationError.self, OperationFailure.self, AggregateError.self,
    ]
    #expect(types.count == 25)
  }

  // MARK: The comparison itself

  private let page = SourceText(path: "page.md", text: Self.text)
  private static let text = """
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

  @Test func onlySwiftIsCode() {
    #expect(page.codeBlocks.map(\.paragraphs) == [[["queue.run {   // a comment", "  first()", "}"], ["second()"]]])
    #expect(page.codeBlocks.map(\.firstLine) == [4])
  }

  @Test func aCommentOfTheSourceIsAPage() {
    let text = """
      /// Words.
      ///
      /// ```swift
      /// first()
      /// ```
        /// ```
        /// a ─▶ b
        /// ```
      """
    #expect(SourceText(path: "A.swift", text: text).codeBlocks.map(\.paragraphs) == [[["first()"]]])
  }

  @Test(arguments: [
    ("each indented by itself", "func f() {\n  queue.run {  // a comment\n    first()\n  }\n}\n\n    second()", true),
    ("in other lines", "queue.run {\n  // a comment\n  first() }\nsecond(\n)", true),
    ("in the middle of a line", "queue.run {  // a comment\n  first()\n}\ntry second()", false),
    ("as the beginning of a line", "queue.run {  // a comment\n  first()\n}\nsecond().first()", false),
    ("with other words", "queue.run {  // acomment\n  first()\n}\nsecond()", false),
    ("in another order", "second()\n\nqueue.run {  // a comment\n  first()\n}", false),
    ("with another line", "queue.run {  // a comment\n  first()\n  more()\n}\nsecond()", false),
    ("with another comment", "queue.run {  // another comment\n  first()\n}\nsecond()", false),
    ("without the last", "queue.run {  // a comment\n  first()\n}", false),
  ])
  func paragraphsAreFound(_ how: String, _ text: String, isFound: Bool) throws {
    let block = try #require(page.codeBlocks.first)
    #expect(block.isIn(SourceText(path: "snippet.swift", text: text).codeLines) == isFound)
  }
}
