import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The README, and the landing page of the documentation.
@Suite(.timeLimit(.minutes(5)))
struct ReadMeSnippets: Printing {
  let printed = Journal<String>()

  // MARK: The first program

  struct Burnt: Error {}

  func cook(_ dish: String, attempt: Int) async throws {
    try await Task.sleep(for: .milliseconds(100))
    if dish == "toast" || attempt == 1 { throw Burnt() }
    print(dish, "is ready on attempt", attempt)
  }

  func makeBreakfast() -> GroupOperation {
    let dishes = ["coffee", "toast", "tea"].map { dish in
      RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { attempt in
        try await cook(dish, attempt: attempt)
      }.named(dish)
    }
    return GroupOperation("breakfast", maxConcurrentOperationCount: 2) {
      TaskOperation { print("the stove is hot") }.named("stove") ==> dishes
    }
  }

  @Test func theFirstProgram() async throws {
    let breakfast = makeBreakfast()
    breakfast.cancelOperations(named: "tea")  // by name; the others go on
    do {
      try await OperationQueue().run(breakfast)  // any stock queue
    } catch let error as AggregateError {
      for failure in error.failures { print(failure) }
    }

    let page = try Repository.file("README.md").lines.joined(separator: "\n")
    #expect(page.contains("```\n\(printed.entries.joined(separator: "\n"))\n```\n"))
  }

  @Test func theGraph() throws {
    let breakfast = makeBreakfast()
    let graph = OperationGraph([breakfast]).mermaid()
    let page = try Repository.file("README.md").lines.joined(separator: "\n")
    #expect(page.contains("```mermaid\n\(graph)```\n"), "\(graph)")
  }

  @Test func onlyTheToastBurns() async {
    let (breakfast, clock) = (makeBreakfast(), ManualClock())
    breakfast.clock = clock
    OperationQueue().addOperation(breakfast)
    await clock.run(until: breakfast)
    #expect(breakfast.failures.map(\.path) == [["breakfast", "toast"]])
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
