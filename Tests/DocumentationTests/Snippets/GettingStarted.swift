import Foundation
import Operations
import OperationsTestSupport
import Testing

func signIn(_ completion: @escaping @Sendable ((any Error)?) -> Void) {
  DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20)) { completion(nil) }
}

/// The page GettingStarted, which is one program.
@Suite(.timeLimit(.minutes(5)))
struct GettingStarted: Printing {
  let printed = Journal<String>()

  struct Busy: Error {}

  struct NoSuchPage: Error, CustomStringConvertible {
    let page: String
    var description: String { "there is no page “\(page)”" }
  }

  @Sendable func load(_ page: String) async throws -> String {
    let pages = [
      "home": "to be or not to be", "news": "no news is good news",
    ]
    try await Task.sleep(for: .milliseconds(20))
    guard let text = pages[page] else { throw NoSuchPage(page: page) }
    return text
  }

  final class Login: AsyncOperation, @unchecked Sendable {
    override func execute() {
      signIn { [self] error in
        if let error { return finish(with: error) }
        finish()
      }
    }
  }

  @Test func theProgram() async throws {
    let queue = OperationQueue()

    let news = TaskOperation { try await load("news") }.named("news")
    print(try await queue.run(news))

    let sports = TaskOperation { try await load("sports") }.named("sports")
    let count = sports.map { text in text.split(separator: " ").count }.named("count")
    do { print(try await queue.run(count), "words") } catch { print(error) }

    let backoff = Backoff.exponential(initial: .milliseconds(10), cap: .seconds(1))
    let home = RetryOperation(attempts: 3, backoff: backoff) { attempt in
      if attempt < 3 { throw Busy() }
      return try await load("home")
    }
    print(try await queue.run(home))

    let greeting = ResultOperation { print("signed in") }
    Login() ==> greeting
    try await queue.run(greeting)

    let pages = ["home", "news", "sports", "weather"].map { page in TaskOperation { try await load(page) }.named(page) }
    let group = GroupOperation("Import", maxConcurrentOperationCount: 2) { Login() ==> pages }
    do { try await queue.run(group) } catch let error as AggregateError {
      for failure in error.failures { print(failure) }
    }

    for name in ["draft", "letter"] {
      queue.addOperation(TaskOperation { print("saving", name) }.exclusive("database"))
    }
    await queue.finished()

    let poll = TaskOperation { try await Task.sleep(for: .seconds(3600)) }.named("poll")
    queue.addOperation(poll)
    queue.cancelOperations(named: "poll")  // or poll.cancel()
    do { try await poll.value } catch is CancellationError { print("cancelled") }

    var lines = printed.entries
    try #require(lines.count == 9)
    // Whichever page of the group fails first.
    lines[4..<6].sort()
    #expect(
      lines == [
        "no news is good news", "“count” has no input from “sports”, which failed: there is no page “sports”",
        "to be or not to be", "signed in", "Import › sports: there is no page “sports”",
        "Import › weather: there is no page “weather”", "saving draft", "saving letter", "cancelled",
      ]
    )
  }

  @Test func anImportThatHangsIsGivenUp() async {
    let clock = ManualClock()
    let hanging = AsyncBlockOperation { _ in }  // never calls finish
    let importer = GroupOperation("Import") { hanging }
    importer.clock = clock
    importer.timeout = .seconds(30)

    OperationQueue().addOperation(importer)
    await clock.run(until: importer)

    #expect(importer.isFinished && hanging.isCancelled)
    #expect(importer.errors.contains { OperationError.Code.timedOut ~= $0 })
  }
}
