import Foundation
import Operations
import Testing

/// The README, and the landing page of the documentation.
@Suite(.timeLimit(.minutes(5)))
struct ReadMeSnippets {
  // MARK: The first program

  /// An operation whose work continues after `execute()` returns.
  final class Brew: AsyncOperation, @unchecked Sendable {
    override func execute() {
      DispatchQueue.global().asyncAfter(deadline: .now() + 0.1) { [self] in
        print(name ?? "", "is ready")
        finish()  // from any thread; the first call counts
      }
    }
  }

  @Test func theFirstProgram() async throws {
    let queue = OperationQueue()  // any stock queue

    let breakfast = GroupOperation("breakfast") {
      Brew().named("water") ==> [Brew().named("tea"), Brew().named("coffee")]
      Brew().named("toast")
    }

    let page = try Repository.file("README.md").lines.joined(separator: "\n")
    #expect(page.contains("```mermaid\n\(OperationGraph([breakfast]).mermaid())```\n"))

    try await queue.run(breakfast)  // throws every failure, with the path that leads to it

    let menu = TaskOperation { "tea coffee toast" }  // an async function as an operation
    let count = menu.map { $0.split(separator: " ").count }  // waits for `menu` and receives its value
    print(try await queue.run(count), "things on the table")
    #expect(breakfast.isSuccessful)
    #expect(try await count.value == 3)
  }

  @Test func theLandingPage() async throws {
    let url = URL(filePath: "page")
    let fetch: @Sendable (URL) async throws -> String = { _ in "one two three" }
    let queue = OperationQueue()
    let text = TaskOperation { try await fetch(url) }
    let words = text.map { $0.split(separator: " ").count }
    print(try await queue.run(words))
    #expect(try await words.value == 3)
  }
}
