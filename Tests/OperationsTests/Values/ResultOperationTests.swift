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
    await OperationQueue().add(operation, until: operation.begun)
    #expect(operation.result == nil)
    #expect(operation.finish(returning: "first"))
    #expect(!operation.finish(returning: "second"))
    #expect(value(operation) == "first")
  }

  @Test func oneOfManyThreadsWins() async throws {
    for _ in 0..<200 {
      let operation = Later()
      await OperationQueue().add(operation, until: operation.begun)
      let wins = Journal<String>()
      await onThreads(4) { thread in if operation.finish(returning: "\(thread)") { wins.write("\(thread)") } }
      #expect(try await operation.value == wins.entries[0] && wins.count == 1)
    }
  }

  @Test func finishingWithoutAValueIsAnErrorWithTheName() async throws {
    let operation = Later().named("empty-handed")
    await OperationQueue().add(operation, until: operation.begun)
    operation.finish()
    let error = await #expect(throws: OperationError.self) { try await operation.value }
    #expect(error?.code == .outputMissing && error?.message.contains("“empty-handed”") == true)
    #expect(operation.errors.count == 1)
    // There is nothing to return.
    try await OperationQueue().run(ResultOperation<Void>())
  }

  @Test(arguments: [false, true])
  func cancelled_discardsTheValueOfTheClosure(whileItRuns: Bool) async {
    let (begun, end) = (Gate(), Gate())
    let operation = ResultOperation {
      begun.open()
      end.pass()
      return "value"
    }
    if !whileItRuns { operation.cancel() }
    OperationQueue().addOperation(operation)
    if whileItRuns {
      await begun.opened()
      operation.cancel()
      #expect(operation.isExecuting)
    }
    end.open()
    await #expect(throws: CancellationError.self) { try await operation.value }
    #expect(operation.errors.isEmpty && begun.isOpen == whileItRuns)
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
