import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

func unexecuted() -> AsyncBlockOperation { AsyncBlockOperation { _ in Issue.record("executed") } }

@Suite(.timeLimit(.minutes(5)))
struct TimeoutTests {
  private let queue = OperationQueue()
  private let clock = ManualClock()

  private func timed<O: AsyncOperation>(_ operation: O, _ timeout: Duration?) -> O {
    operation.clock = clock
    operation.timeout = timeout
    return operation
  }

  private func held(_ timeout: Duration?) -> HeldOperation { timed(HeldOperation().named("slow"), timeout) }

  /// Returns when the operation and its timeout have started.
  private func begin(_ operation: AsyncOperation, _ begun: Gate) async {
    await queue.add(operation, until: begun)
    await clock.waitForSleepers(1)
  }

  @Test func itFreesTheQueueThoughTheWorkNeverFinishes() async {
    let (lane, operation, next) = (OperationQueue.limited(to: 1), held(.seconds(30)), AsyncOperation())
    lane.addOperations([operation, next])
    await operation.begun.opened()
    await clock.advance(by: .seconds(29), sleepers: 1)
    #expect(!operation.isFinished && !operation.isCancelled)
    clock.advance(by: .seconds(1))
    #expect(operation.isFinished && operation.isCancelled)
    await next.finished()
    let error = await #expect(throws: OperationError.self) { try await operation.completed() }
    #expect(error?.code == .timedOut && error?.message.contains("“slow”") == true)
    // Late, and harmless.
    operation.gate.open()
    operation.finish(with: TestError("late"))
    #expect(operation.errors.count == 1)
  }

  @Test func workThatEndsInTimeIsNotDisturbed() async throws {
    let operation = held(.seconds(30))
    await begin(operation, operation.begun)
    operation.gate.open()
    try await operation.completed()
    await poll { clock.sleepers == 0 }
    clock.advance(by: .seconds(60))
    #expect(operation.isSuccessful)
  }

  @Test func theTimeBeginsWithTheExecutionAndMayBeSetByAnObserverOfTheStart() async {
    let (first, operation, sleepers) = (HeldOperation(), held(.seconds(1)), Journal<Int>())
    operation.addCondition("later") { [clock] _ in try await clock.sleep(for: .seconds(50)) }
    operation.addObserver(didStart: { [clock] operation in
      sleepers.write(clock.sleepers)
      operation.timeout = .seconds(9)
    })
    first ==> operation
    queue.addOperations([first, operation])
    await first.begun.opened()
    clock.advance(by: .seconds(100))
    first.gate.open()
    await clock.advance(by: .seconds(50), sleepers: 1)
    await operation.begun.opened()
    clock.advance(by: .seconds(8))
    #expect(sleepers.entries == [0] && clock.sleepers == 1 && operation.isExecuting)
    clock.advance(by: .seconds(1))
    #expect(operation.isFinished)
  }

  @Test(arguments: [(TestError("stopped"), ["stopped"]), (POSIXError(.ECANCELED), [])] as [(any Error, [String])])
  func whatTheWorkReportsWhileItIsBeingStoppedIsACauseOfTheTimeout(_ error: any Error, causes: [String]) async {
    let operation = timed(StoppedOperation(reporting: error), .seconds(1))
    await begin(operation, operation.begun)
    clock.advance(by: .seconds(1))
    let thrown = await #expect(throws: OperationError.self) { try await operation.completed() }
    #expect(thrown?.code == .timedOut && thrown?.underlyingErrors.map { "\($0)" } == causes)
    #expect(operation.errors.count == 1)
  }

  @Test(arguments: [nil, TestError("stopped"), CancellationError()] as [(any Error)?])
  func theErrorsOfItsAttemptsAreCausesOfTheTimeoutOfARetry(_ error: (any Error)?) async {
    for _ in 0..<50 {
      let begun = Gate()
      let retry = RetryOperation(attempts: 5) { number -> AsyncOperation in
        if number < 3 { throw TestError("\(number)") }
        begun.open()
        return error.map { StoppedOperation(reporting: $0) } ?? AsyncBlockOperation { _ in }
      }
      await begin(timed(retry, .seconds(1)), begun)
      clock.advance(by: .seconds(1))
      let thrown = await #expect(throws: OperationError(.timedOut, "")) { try await retry.completed() }
      // An attempt that is being stopped may report its error too late.
      #expect(thrown?.underlyingErrors.prefix(2).map { "\($0)" } == ["1", "2"] && retry.errors.count == 1)
    }
  }

  @Test(arguments: [nil, TestError("no more")])
  func aTimeoutAfterACancellationEndsTheOperationAndAddsNothing(reason: TestError?) async {
    let operation = held(.seconds(1))
    await begin(operation, operation.begun)
    if let reason { operation.cancel(with: reason) } else { operation.cancel() }
    clock.advance(by: .seconds(1))
    #expect(operation.isFinished && operation.errors as? [TestError] == reason.map { [$0] } ?? [])
  }

  @Test(arguments: [Duration.zero, .seconds(-1), .shortest])
  func oneThatHasNoTimeDoesNotExecute(_ timeout: Duration) async {
    let block = timed(unexecuted(), timeout)
    block.addCondition("not asked") { _ in Issue.record("evaluated") }
    block.addObserver(didStart: { _ in Issue.record("started") })
    await #expect(throws: OperationError(.timedOut, "")) { try await queue.run(block) }
    let member = unexecuted()
    await #expect(throws: OperationError(.timedOut, "")) {
      try await queue.run(timed(GroupOperation([member]), timeout))
    }
    await member.finished()
  }

  @Test func setDuringExecutionItCountsFromThen() async {
    let operation = held(.seconds(10))
    await begin(operation, operation.begun)
    clock.advance(by: .seconds(9))
    operation.timeout = .seconds(10)
    clock.advance(by: .seconds(9))
    #expect(!operation.isFinished)
    operation.timeout = nil
    #expect(operation.timeout == nil && clock.sleepers == 0)
    clock.advance(by: .seconds(100))
    #expect(!operation.isFinished)
    operation.timeout = .seconds(1)
    clock.advance(by: .seconds(1))
    #expect(operation.isFinished)
  }

  // MARK: Groups

  @Test func aGroupThatTimesOut_namesWhatExecutesKeepsTheFailuresAndWindsItsMembersDown() async {
    let held = (0..<8).map { HeldOperation().named("page \($0)") }
    let failing = AsyncBlockOperation { $0.finish(with: TestError("gone")) }.named("page 8")
    let stubborn = StoppedOperation(reporting: TestError("stopped")).named("page 9")
    let waiting = unexecuted()
    held ==> waiting
    let group = timed(GroupOperation(held + [failing, stubborn, waiting]).named("Import"), .seconds(5))
    await begin(group, stubborn.begun)
    for operation in held { await operation.begun.opened() }
    await poll { group.engine.state.withLock { $0.members.count == 10 && $0.schedule.waitingResults == nil } }
    clock.advance(by: .seconds(5))
    #expect(group.isFinished && held.allSatisfy { $0.isCancelled && !$0.isFinished })
    let error = await #expect(throws: OperationError.self) { try await group.completed() }
    #expect(
      error?.message == "“Import” was cancelled because it took longer than 5 seconds. Still executing: “page 0”, "
        + "“page 1”, “page 2”, “page 3”, “page 4”, “page 5”, “page 6”, “page 7” and 1 other."
    )
    let causes = error?.underlyingErrors.map { "\($0)" }
    #expect(causes == ["Import › page 8: gone", "Import › page 9: stopped"])
    await waiting.finished()
    // The last newcomer is added when all members have finished.
    for operation in held + [held[0]] {
      let late = unexecuted()
      group.addOperation(late)
      await late.finished()
      #expect(late.isCancelled)
      await operation.finished(opening: operation.gate)
    }
    #expect(group.failures.map(\.path) == [["Import"]])
  }

  @Test(arguments: [false, true])
  func aGroupThatFinishesBeforeItsMembers_keepsTheFailuresInsideGroupsThatExecute(isCancelled: Bool) async {
    let (held, failing) = (HeldOperation(), AsyncBlockOperation { $0.finish(with: TestError("gone")) }.named("page"))
    let inner = GroupOperation([GroupOperation([held, failing]).named("pages")]).named("inner")
    let group = timed(GroupOperation([inner]).named("Import"), .seconds(5))
    group.finishesWhenCancelled = isCancelled
    await begin(group, held.begun)
    await failing.finished()
    if isCancelled { group.cancel() } else { clock.advance(by: .seconds(5)) }
    let error = await #expect(throws: (any Error).self) { try await group.completed() }
    let causes = (error as? OperationError)?.underlyingErrors ?? (error as? AggregateError)?.failures ?? []
    #expect(causes.map { "\($0)" } == ["Import › inner › pages › page: gone"])
    await inner.finished(opening: held.gate)
  }

  @Test func nestedGroupThatTimedOut_isReleasedAndTheOuterOneGoesOn() async {
    let live = LiveCount()
    do {
      let stuck = HeldOperation()
      // The gate belongs to the operation, and so does the closure.
      stuck.gate.whenOpen(live.counted())
      // It waits for the slot when the time is over.
      let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { _ in
        ResultOperation<Int> { throw TestError("again") }
      }
      let inner = CountedGroup(live, [retry, stuck]).named("inner")
      (inner.maxConcurrentOperationCount, inner.timeout) = (1, .seconds(5))
      let waiting = AsyncOperation()
      inner ==> waiting
      let outer = timed(CountedGroup(live, [inner, waiting]).named("outer"), .seconds(9))
      await queue.add(outer, until: stuck.begun)
      await clock.advance(by: .seconds(1), sleepers: 3)
      clock.advance(by: .seconds(4))
      let error = await #expect(throws: AggregateError.self) { try await outer.completed() }
      #expect(error?.failures.map(\.path) == [["outer", "inner"]] && waiting.isSuccessful)
    }
    await live.none()
  }

  @Test func oneThatHasBeenReleasedStillFinishesLateMembers() async {
    for _ in 0..<50 {
      let (stubborn, late) = (HeldOperation(), unexecuted())
      do {
        let group = timed(GroupOperation([stubborn]), .seconds(1))
        await begin(group, stubborn.begun)
        clock.advance(by: .seconds(1))
        await group.finished()
        await queue.finished()
        group.addOperation(late)
      }
      await late.finished()
      #expect(late.isCancelled)
      stubborn.gate.open()
    }
  }

  @Test func membersTakeTheirGroupsClockAndKeepItAfterTheEnd() async throws {
    let own = ManualClock()
    let (plain, special, attempt) = (AsyncOperation(), AsyncOperation(), ResultOperation { 1 })
    special.clock = own
    let retry = RetryOperation(attempts: 2) { _ in attempt }
    let outer = GroupOperation([GroupOperation([plain, special]), retry])
    #expect(plain.clock is ContinuousClock)
    outer.clock = clock
    #expect(plain.clock as? ManualClock === clock && special.clock as? ManualClock === own)
    try await queue.run(outer)
    #expect(plain.clock as? ManualClock === clock && attempt.clock as? ManualClock === clock)
  }
}
