import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The page GettingStarted, which is one program.
@Suite(.timeLimit(.minutes(5)))
struct GettingStarted: Printing {
  let printed = Journal<String>()

  struct NoSuchPage: Error, CustomStringConvertible {
    let page: String
    var description: String { "there is no page “\(page)”" }
  }

  enum Server {
    static func signIn(_ completion: @escaping @Sendable ((any Error)?) -> Void) {
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20)) { completion(nil) }
    }

    static func load(_ page: String, _ completion: @escaping @Sendable (Result<String, any Error>) -> Void) {
      let pages = ["home": "to be or not to be", "news": "no news is good news"]
      DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(20)) {
        if let text = pages[page] { completion(.success(text)) } else { completion(.failure(NoSuchPage(page: page))) }
      }
    }
  }

  final class Login: AsyncOperation, @unchecked Sendable {
    override func execute() {
      Server.signIn { [self] error in
        if let error { return finish(with: error) }
        finish()
      }
    }
  }

  final class Load: ResultOperation<String>, @unchecked Sendable {
    private let page: String

    init(_ page: String) {
      self.page = page
      super.init()
      named(page)
    }

    override func execute() {
      Server.load(page) { [self] result in finish(with: result) }
    }
  }

  @Test func theProgram() async throws {
    let queue = OperationQueue()

    let login = Login()
    print(login.state)
    try await queue.run(login)
    print(login.state, login.isSuccessful)

    let first = Login()
    let second = ResultOperation { print("signed in") }
    let third = ResultOperation { print("ready") }
    first ==> second ==> third
    try await queue.run(third)

    print(try await queue.run(Load("news")))

    let words = Load("home").map { text in text.split(separator: " ").count }
    print(try await queue.run(words), "words")

    do {
      let words = Load("sports").map { text in text.split(separator: " ").count }.named("count")
      print(try await queue.run(words), "words")
    } catch {
      print(error)
    }

    let importer = GroupOperation("Import") {
      Login() ==> ["home", "news", "sports", "weather"].map { page in Load(page) }
    }
    do {
      try await queue.run(importer)
    } catch let error as AggregateError {
      for failure in error.failures { print(failure) }
    }

    var lines = printed.entries
    // Whichever fails first.
    let failures = lines.indices.filter { lines[$0].hasPrefix("Import › ") }
    #expect(failures.count == 2)
    if let first = failures.first, let last = failures.last { lines[first...last].sort() }
    #expect(
      lines == [
        "pending", "finished true", "signed in", "ready", "no news is good news", "6 words",
        "“count” has no input from “sports”, which failed: there is no page “sports”",
        "Import › sports: there is no page “sports”",
        "Import › weather: there is no page “weather”",
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
