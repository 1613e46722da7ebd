import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ResultOperationTests {
  private final class Later: ResultOperation<String>, @unchecked Sendable {
    let begun = Gate()
    override func execute() { begun.open() }
  }

  private func value(_ operation: ResultOperation<String>) -> String? {
    guard case .success(let value)? = operation.result else { return nil }
    return value
  }

  @Test func theResultIsSetBeforeFoundationSeesTheEnd() async {
    for _ in 0..<200 {
      let operation = ResultOperation { "value" }
      let seen = Journal<String?>()
      let dependent = BlockOperation { seen.write(value(operation)) }
      operation ==> dependent
      OperationQueue().addOperations([dependent, operation])
      await seen.reaches(1)
      #expect(seen.entries == ["value"])
    }
  }

  @Test func thereIsNoneBeforeTheEnd() async throws {
    let operation = Later()
    #expect(operation.result == nil)
    OperationQueue().addOperation(operation)
    await operation.begun.opened()
    #expect(operation.result == nil)
    #expect(operation.finish(returning: "first"))
    #expect(!operation.finish(returning: "second"))
    #expect(value(operation) == "first")
  }

  @Test func oneOfManyThreadsWins() async throws {
    for _ in 0..<200 {
      let operation = Later()
      OperationQueue().addOperation(operation)
      await operation.begun.opened()
      let wins = Journal<String>()
      await onThreads(4) { thread in if operation.finish(returning: "\(thread)") { wins.write("\(thread)") } }
      #expect(try await operation.value == wins.entries[0] && wins.count == 1)
    }
  }

  @Test func finishingWithoutAValueIsAnErrorWithTheName() async {
    let operation = Later().named("empty-handed")
    OperationQueue().addOperation(operation)
    await operation.begun.opened()
    operation.finish()
    let error = await #expect(throws: OperationError.self) { try await operation.value }
    #expect(error?.code == .outputMissing && error?.message.contains("“empty-handed”") == true)
    #expect(operation.errors.count == 1)
  }

  @Test func finishingWithoutAValueIsFineIfThereIsNothingToReturn() async throws {
    let operation = ResultOperation<Void>()
    try await OperationQueue().run(operation)
    #expect(operation.isSuccessful)
  }

  @Test func aCancelledOneHasACancellationError() async {
    let operation = ResultOperation { "value" }
    operation.cancel()
    await #expect(throws: CancellationError.self) { try await OperationQueue().run(operation) }
    #expect(operation.errors.isEmpty)
  }

  @Test func theValueMayBeAwaitedByManyBeforeAndAfter() async throws {
    let operation = Later()
    OperationQueue().addOperation(operation)
    let tasks = (0..<10).map { _ in Task { try await operation.value } }
    await operation.begun.opened()
    tasks[0].cancel()
    operation.finish(returning: "value")
    for task in tasks { #expect(try await task.value == "value") }
    #expect(try await operation.value == "value" && !operation.isCancelled)
  }

  @Test func theClosureIsReleased() async {
    let live = LiveCount()
    let operation = {
      let token = LiveCount.Token(live)
      return ResultOperation { withExtendedLifetime(token) { 1 } }
    }()
    await start(operation)
    #expect(live.alive == 0)
  }
}
