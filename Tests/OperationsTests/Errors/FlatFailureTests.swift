import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Failures that come through an `await`.
@Suite(.timeLimit(.minutes(5)))
struct FlatFailureTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func failing(_ name: String) -> NoteOperation { NoteOperation(name, journal, failing: TestError(name)) }

  private func expectPaths(_ paths: [[String]], of operation: AsyncOperation) async {
    let error = await #expect(throws: AggregateError.self) { try await operation.completed() }
    #expect(error?.failures.map(\.path) == paths)
    #expect(error?.errors(of: TestError.self).count == paths.count && operation.errors.count == paths.count)
  }

  @Test(arguments: 1...2)
  func aTaskThatAwaitedAGroup(_ count: Int) async {
    let pages = GroupOperation((1...count).map { failing("page \($0)") }).named("Download")
    pages.maxConcurrentOperationCount = 1
    let task = TaskOperation { try await OperationQueue().run(pages) }.named("sync")
    let outer = GroupOperation("Import") { task }
    await queue.run(settling: [outer])
    let paths = (1...count).map { ["sync", "Download", "page \($0)"] }
    await expectPaths(paths, of: task)
    #expect(outer.failures.map(\.path) == paths.map { ["Import"] + $0 })
  }

  @Test func aRetryOfAGroup() async {
    let retry = RetryOperation(attempts: 2) { number in
      GroupOperation("Download") { failing("page \(number)") }
    }
    retry.name = "patient"
    await queue.run(settling: [retry])
    await expectPaths([["patient", "Download", "page 2"]], of: retry)
    #expect(retry.attemptErrors.count == 2 && retry.attemptErrors.allSatisfy { $0 is AggregateError })
  }

  @Test func anAggregateWithinAnAggregate() async {
    let inner = AggregateError([OperationFailure(path: ["c"], error: TestError("1"))])
    let outer = AggregateError([
      OperationFailure(path: ["b"], error: inner), OperationFailure(path: [], error: TestError("2")),
    ])
    let operation = AsyncBlockOperation { $0.finish(with: outer) }.named("a")
    await queue.run(settling: [operation])
    await expectPaths([["a", "b", "c"], ["a"]], of: operation)
  }

  @Test func flatMapsKeepTheNamesOnTheWay() async {
    let group = GroupOperation("Import") {
      ResultOperation { 1 }.flatMap { _ in
        ResultOperation { 2 }.flatMap { _ in
          TaskOperation<Int> { [journal] in
            try await OperationQueue().run(
              GroupOperation("G") { NoteOperation("m", journal, failing: TestError("m")) }
            )
            return 3
          }.named("task")
        }.named("second")
      }.named("first")
    }
    await queue.run(settling: [group])
    #expect(group.failures.map(\.path) == [["Import", "first", "second", "task", "G", "m"]])
  }

  @Test func flatMapThatOnlyFollows() async {
    let login = ResultOperation<Int> { throw TestError("wrong") }.named("login")
    queue.addOperation(login)
    let page = ResultOperation { 1 }.flatMap { _ in login }.named("page")
    let group = GroupOperation("Import") { page }
    await queue.run(settling: [group])
    #expect(group.failures.map(\.path) == [["Import", "page", "login"]])
  }
}
