import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct OperationConditionTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func condition(_ name: String, failing error: (any Error)? = nil) -> OperationCondition {
    OperationCondition(name: name) { _ in
      journal.write(name)
      if let error { throw error }
    }
  }

  @Test func theyAreEvaluatedAfterTheDependenciesAndBeforeExecutionInOrder() async {
    let (first, second) = (NoteOperation("first", journal), HeldOperation())
    second.addCondition(condition("one"))
    second.addCondition(condition("two"))
    first ==> second
    queue.addOperation(first)
    await queue.begin(second)
    #expect(journal.entries == ["first", "one", "two"])
    #expect(second.core.withLock { $0.task == nil }, "the task that evaluates them has been released")
    await second.finished(opening: second.gate)
  }

  @Test func anUnmetOneFinishesTheOperationUnexecuted() async {
    let operation = unexecuted().named("upload")
    operation.addObserver(didStart: { _ in Issue.record("started") })
    operation.addCondition(condition("signed in", failing: TestError("signed out")))
    operation.addCondition(condition("never asked"))
    let error = await #expect(throws: OperationError.self) { try await queue.run(operation) }
    #expect(error?.code == .conditionFailed && error?.underlyingErrors as? [TestError] == [TestError("signed out")])
    #expect(error?.description == "“upload” did not run because its condition “signed in” was not met: signed out.")
    #expect(operation.isFinished && !operation.isCancelled && operation.errors.count == 1)
    #expect(journal.entries == ["signed in"])
  }

  @Test func waitingForACondition_holdsNoThreadAndIsPending() async throws {
    let (gate, queue) = (Gate(), OperationQueue.limited(to: 500))
    let waiting = OperationCondition(name: "open") { _ in
      journal.write("asked")
      await gate.opened()
    }
    let operations = (0..<500).map { _ in AsyncOperation() }
    for operation in operations { operation.addCondition(waiting) }
    queue.addOperations(operations)
    await journal.reaches(500)
    #expect(operations.allSatisfy { $0.state == .pending && !$0.isExecuting })
    await queue.drained(opening: [gate])
    #expect(operations.allSatisfy { $0.isSuccessful })
  }

  @Test func cancellingDuringTheEvaluationEndsTheOperationAtOnceAndCancelsTheEvaluation() async {
    let (evaluating, cancelled, end) = (Gate(), Gate(), Gate())
    let operation = unexecuted()
    operation.addCondition("stubborn") { _ in
      evaluating.open()
      await withTaskCancellationHandler(operation: end.opened, onCancel: cancelled.open)
    }
    await queue.add(operation, until: evaluating)
    operation.cancel()
    #expect(operation.isFinished && operation.isCancelled && operation.errors.isEmpty)
    await cancelled.opened()
    end.open()
  }

  @Test func theConditionMayCancelOrFinishTheOperation() async throws {
    let (cancelled, finished, value) = (unexecuted(), unexecuted(), ResultOperation<Int> { 1 })
    cancelled.addCondition("cancelling") {
      $0.cancel(with: TestError("reason"))
      throw TestError("unmet")
    }
    finished.addCondition("finishing") { $0.finish(with: TestError("done")) }
    value.addCondition("knows it") { ($0 as? ResultOperation<Int>)?.finish(returning: 2) }
    await queue.run(settling: [cancelled, finished, value])
    #expect(cancelled.errors as? [TestError] == [TestError("reason")] && cancelled.isCancelled)
    #expect(finished.errors as? [TestError] == [TestError("done")] && !finished.isCancelled)
    #expect(try await value.value == 2)
  }

  @Test func aConditionThatCancelsItsOwnTaskIsMetAllTheSame() async throws {
    let operation = AsyncOperation()
    operation.addCondition("odd") { _ in unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() } }
    try await queue.run(operation)
  }

  // MARK: Dependencies

  @Test func noFailedDependencies() async {
    let failing = NoteOperation("Download", journal, failing: TestError("no network"))
    let (fine, operation) = (NoteOperation("fine", journal), unexecuted().named("Store"))
    operation.addCondition(.noFailedDependencies)
    [failing, fine] ==> operation
    let error = await #expect(throws: OperationError.self) { try await queue.run(operation) }
    #expect(error?.underlyingErrors as? [TestError] == [TestError("no network")])
    #expect(error?.message.contains("“Download” failed") == true && error?.message.contains("fine") == false)
  }

  @Test func noCancelledDependencies() async throws {
    let cancelled = BlockOperation {}.named("plain")
    cancelled.cancel()
    queue.addOperation(cancelled)
    let operation = unexecuted()
    operation.addCondition(.noCancelledDependencies)
    cancelled ==> operation
    let error = await #expect(throws: OperationError.self) { try await queue.run(operation) }
    #expect(error?.code == .conditionFailed && error?.message.contains("“plain” was cancelled") == true)
    let fine = AsyncOperation()
    fine.addCondition(.noCancelledDependencies)
    fine.addCondition(.noFailedDependencies)
    AsyncOperation() ==> fine
    try await queue.run(fine)
  }

  // MARK: Combinations

  @Test(arguments: [
    (OperationCondition.not(.met), false), (.not(.unmet), true),
    (.any(.unmet, .met), true), (.any(.unmet, .unmet), false), (.any(), false),
    (.all(.met, .met), true), (.all(.met, .unmet), false), (.all(), true),
    (.not(.any(.unmet, .all(.met, .unmet))), true),
  ])
  func combinations(_ condition: OperationCondition, isMet: Bool) async {
    let operation = AsyncOperation()
    operation.addCondition(condition)
    await queue.run(settling: [operation])
    #expect(operation.isSuccessful == isMet)
  }

  @Test func theCausesOfACombinationAreKept() async {
    let operation = unexecuted()
    operation.addCondition(.any(condition("a", failing: TestError("1")), condition("b", failing: TestError("2"))))
    let error = await #expect(throws: OperationError.self) { try await queue.run(operation) }
    #expect(error?.underlyingErrors as? [TestError] == [TestError("1"), TestError("2")])
    #expect(error?.message.contains("any of a, b") == true)
  }
}

extension OperationCondition {
  fileprivate static var met: Self { Self(name: "met") { _ in } }
  fileprivate static var unmet: Self { Self(name: "unmet") { _ in throw TestError("unmet") } }
}
