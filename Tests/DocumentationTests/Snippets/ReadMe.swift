import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The README, and the landing page of the documentation.
@Suite(.timeLimit(.minutes(5)))
struct ReadMeSnippets: Printing {
  let printed = Journal<String>()

  private func isOnThePage(_ text: String) throws -> Bool {
    try Repository.file("README.md").lines.joined(separator: "\n").contains("```\n\(text)\n```\n")
  }

  // MARK: The first screen

  @Test func theFirstScreen() async throws {
    let queue = OperationQueue()
    @Sendable func load(_ page: String) async throws -> String {
      if page == "sports" { throw NoSuchPage(page: page) } else { "no news is good news" }
    }
    func save(_ text: String) async throws { print("saved:", text) }

    // Up to three attempts. At most two at once hold the key of the host.
    let host: ExclusivityKey = "example.org"  // or ExclusivityKey(name)
    let page = RetryOperation(attempts: 3) { _ in try await load("news") }
    let news = try await queue.run(page.limited(host, to: 2))

    // One task at a time under a key, wherever it runs.
    try await withKeys(.exclusive("database")) { try await save(news) }

    // A group has an order, and reports each failure with its path.
    let sync = GroupOperation("sync") {
      let pages = ["home", "sports"].map { page in TaskOperation { try await load(page) }.named(page) }
      TaskOperation { print("signed in") } ==> pages
    }
    do { try await queue.run(sync) } catch { print(error) }

    #expect(try isOnThePage(printed.entries.joined(separator: "\n")))
  }

  // MARK: The first program

  struct Burnt: Error {}

  func cook(_ dish: String, attempt: Int) throws {
    if dish == "toast" || attempt == 1 { throw Burnt() }
    print(dish, "is ready on attempt", attempt)
  }

  func makeBreakfast() -> GroupOperation {
    let pause = Backoff.constant(.seconds(1))
    let dishes = ["coffee", "toast", "tea"].map { dish in
      RetryOperation(attempts: 2, backoff: pause) { attempt in try cook(dish, attempt: attempt) }.named(dish)
    }
    let stove = TaskOperation { print("the stove is hot") }
    return GroupOperation("breakfast", maxConcurrentOperationCount: 2) { stove.named("stove") ==> dishes }
  }

  @Test func theFirstProgram() async throws {
    let breakfast = makeBreakfast()
    breakfast.cancelOperations(named: "tea")  // the others go on
    do {
      try await OperationQueue().run(breakfast)  // any stock queue
    } catch let error as AggregateError {
      for failure in error.failures { print(failure) }
    }

    #expect(try isOnThePage(printed.entries.joined(separator: "\n")))
  }

  @Test func onlyTheToastBurns() async {
    let (breakfast, clock) = (makeBreakfast(), ManualClock())
    breakfast.clock = clock
    OperationQueue().addOperation(breakfast)
    await clock.run(until: breakfast)
    let paths = breakfast.failures.map(\.path)
    #expect(paths == [["breakfast", "toast"]])
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
