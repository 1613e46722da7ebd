import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

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

  private func unexecuted() -> AsyncBlockOperation { AsyncBlockOperation { _ in Issue.record("executed") } }

  @Test func theyAreEvaluatedAfterTheDependenciesAndBeforeExecutionInOrder() async throws {
    let (first, second) = (NoteOperation("first", journal), NoteOperation("second", journal))
    second.addCondition(condition("one"))
    second.addCondition(condition("two"))
    first ==> second
    try await queue.run(graphEndingIn: second)
    #expect(journal.entries == ["first", "one", "two", "second"])
  }

  @Test func anUnmetOneFinishesTheOperationUnexecuted() async {
    let operation = unexecuted().named("upload")
    operation.addObserver(OperationObserver(didStart: { _ in Issue.record("started") }))
    operation.addCondition(condition("signed in", failing: TestError("signed out")))
    operation.addCondition(condition("never asked"))
    let error = await #expect(throws: OperationError.self) { try await queue.run(operation) }
    #expect(error?.code == .conditionFailed && error?.underlyingErrors as? [TestError] == [TestError("signed out")])
    #expect(error?.description == "“upload” did not run because its condition “signed in” was not met: signed out.")
    #expect(operation.isFinished && !operation.isCancelled && operation.errors.count == 1)
    #expect(journal.entries == ["signed in"])
  }

  @Test func waitingForOneHoldsNoThreadAndTheOperationIsPending() async throws {
    let (gate, asked, queue) = (Gate(), Journal<Int>(), OperationQueue.limited(to: 500))
    let operations = (0..<500).map { index in
      let operation = AsyncOperation()
      operation.addCondition(
        OperationCondition(name: "open") { _ in
          asked.write(index)
          await gate.opened()
        }
      )
      return operation
    }
    queue.addOperations(operations)
    await asked.reaches(500)
    #expect(operations.allSatisfy { $0.state == .pending && !$0.isExecuting })
    gate.open()
    await queue.finished()
    #expect(operations.allSatisfy { $0.isSuccessful })
  }

  @Test func cancellingDuringTheEvaluationEndsTheOperationAtOnceAndCancelsTheEvaluation() async {
    let (evaluating, cancelled, end) = (Gate(), Gate(), Gate())
    let operation = unexecuted()
    operation.addCondition(
      OperationCondition(name: "stubborn") { _ in
        evaluating.open()
        await withTaskCancellationHandler {
          await end.opened()
        } onCancel: {
          cancelled.open()
        }
      }
    )
    queue.addOperation(operation)
    await evaluating.opened()
    operation.cancel()
    #expect(operation.isFinished && operation.isCancelled && operation.errors.isEmpty)
    await cancelled.opened()
    end.open()
  }

  @Test func theConditionMayCancelOrFinishTheOperation() async throws {
    let (cancelled, finished, value) = (unexecuted(), unexecuted(), ResultOperation<Int> { 1 })
    cancelled.addCondition(OperationCondition(name: "cancelling") { $0.cancel() })
    finished.addCondition(OperationCondition(name: "finishing") { $0.finish(with: TestError("done")) })
    value.addCondition(OperationCondition(name: "knows it") { ($0 as? ResultOperation<Int>)?.finish(returning: 2) })
    await queue.run(settling: [cancelled, finished, value])
    #expect(cancelled.isCancelled && cancelled.errors.isEmpty)
    #expect(finished.errors as? [TestError] == [TestError("done")] && !finished.isCancelled)
    #expect(try await value.value == 2)
  }

  @Test func aConditionThatCancelsItsOwnTaskIsMetAllTheSame() async throws {
    let operation = AsyncOperation()
    operation.addCondition(
      OperationCondition(name: "odd") { _ in unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() } }
    )
    try await queue.run(operation)
  }

  @Test func cancelledOrFinishedBeforeNoneIsEvaluated() async {
    let operations = [unexecuted(), unexecuted()]
    for operation in operations { operation.addCondition(condition("evaluated")) }
    operations[0].cancel()
    operations[1].finish()
    await queue.run(settling: operations)
    #expect(journal.entries.isEmpty)
  }

  @Test func withoutAnInputNoneIsEvaluated() async {
    let operation = TransformOperation { (_: Int) in }
    ResultOperation<Int> { throw TestError("none") }.pass(to: operation)
    operation.addCondition(condition("asked in vain"))
    queue.addGraph(endingIn: operation)
    await operation.finished()
    #expect(journal.entries.isEmpty && (operation.errors.first as? OperationError)?.code == .inputUnavailable)
  }

  @Test func theInputComesAfterTheConditions() async throws {
    let operation = TransformOperation { (value: Int) in value }
    ResultOperation { 1 }.pass(to: operation) { [journal] operation, value in
      journal.write("input")
      operation.input = value
    }
    operation.addCondition(condition("condition"))
    #expect(try await queue.run(graphEndingIn: operation) == 1)
    #expect(journal.entries == ["condition", "input"])
  }

  @Test func aGroupsConditionConcernsItsMembers() async {
    let member = unexecuted()
    let group = GroupOperation("Import") { member }
    group.addCondition(condition("allowed", failing: TestError("forbidden")))
    let error = await #expect(throws: AggregateError.self) { try await queue.run(group) }
    #expect(error?.failures.map(\.path) == [["Import"]] && member.isFinished)
  }

  @Test func membersHaveConditionsToo() async throws {
    let operations = (0..<200).map { NoteOperation("\($0)", journal) }
    for operation in operations { operation.addCondition(OperationCondition(name: "met") { _ in await Task.yield() }) }
    let unmet = unexecuted()
    unmet.addCondition(condition("unmet", failing: TestError("no")))
    let group = GroupOperation(operations + [unmet])
    group.maxConcurrentOperationCount = 3
    await #expect(throws: AggregateError.self) { try await queue.run(group) }
    #expect(journal.count == 201 && group.failures.count == 1)
  }

  // MARK: Dependencies

  @Test func noFailedDependencies() async {
    let failing = NoteOperation("Download", journal, failing: TestError("no network"))
    let fine = NoteOperation("fine", journal)
    let operation = unexecuted().named("Store")
    operation.addCondition(.noFailedDependencies)
    [failing, fine] ==> operation
    let error = await #expect(throws: OperationError.self) { try await queue.run(graphEndingIn: operation) }
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
    try await queue.run(graphEndingIn: fine)
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

  @Test func nothingIsLeftAlive() async {
    let live = LiveCount()
    do {
      let token = LiveCount.Token(live)
      for isCancelled in [false, true] {
        let operation = AsyncOperation()
        operation.addCondition(OperationCondition(name: "token") { _ in withExtendedLifetime(token) {} })
        if isCancelled { operation.cancel() }
        await queue.run(settling: [operation])
      }
    }
    await live.none()
  }
}

extension OperationCondition {
  fileprivate static var met: Self { Self(name: "met") { _ in } }
  fileprivate static var unmet: Self { Self(name: "unmet") { _ in throw TestError("unmet") } }
}
