import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

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

  private func unexecuted() -> AsyncBlockOperation { AsyncBlockOperation { _ in Issue.record("executed") } }

  /// Returns when the operation and its timeout have started.
  private func begin(_ operation: AsyncOperation, _ begun: Gate) async {
    await queue.add(operation, until: begun)
    await clock.waitForSleepers(1)
  }

  @Test func itFreesTheQueueThoughTheWorkNeverFinishes() async {
    let lane = OperationQueue.limited(to: 1)
    let operation = held(.seconds(30))
    let next = AsyncOperation()
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

  @Test func theTimeBeginsWithTheExecution() async {
    let first = HeldOperation()
    let operation = held(.seconds(1))
    operation.addCondition(OperationCondition(name: "later") { [clock] _ in try await clock.sleep(for: .seconds(50)) })
    first ==> operation
    queue.addOperations([first, operation])
    await first.begun.opened()
    clock.advance(by: .seconds(100))
    first.gate.open()
    await clock.advance(by: .seconds(50), sleepers: 1)
    await operation.begun.opened()
    #expect(operation.isExecuting)
    clock.advance(by: .seconds(1))
    #expect(operation.isFinished)
  }

  @Test(arguments: [(TestError("stopped"), ["stopped"]), (POSIXError(.ECANCELED), [])] as [(any Error, [String])])
  func whatTheWorkReportsWhileItIsBeingStoppedIsACauseOfTheTimeout(_ error: any Error, causes: [String]) async {
    for _ in 0..<200 {
      let operation = timed(StoppedOperation(reporting: error), .seconds(1))
      await begin(operation, operation.begun)
      clock.advance(by: .seconds(1))
      let thrown = await #expect(throws: OperationError.self) { try await operation.completed() }
      #expect(thrown?.code == .timedOut && thrown?.underlyingErrors.map { "\($0)" } == causes)
      #expect(operation.errors.count == 1)
    }
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
      let thrown = await #expect(throws: OperationError.self) { try await retry.completed() }
      #expect(thrown?.code == .timedOut)
      // An attempt that is being stopped may report its error too late.
      #expect(thrown?.underlyingErrors.prefix(2).map { "\($0)" } == ["1", "2"] && retry.errors.count == 1)
    }
  }

  @Test func aTaskThatThrowsAnErrorOfItsOwnWhenItIsStoppedHasTimedOut() async {
    for _ in 0..<(isThorough ? 2000 : 400) {
      let operation = TaskOperation { [clock] in
        do { try await clock.sleep(for: .seconds(100)) } catch { throw TestError("stopped") }
      }
      queue.addOperation(timed(operation, .seconds(1)))
      await clock.advance(by: .seconds(1), sleepers: 2)
      await #expect(throws: OperationError(.timedOut, "")) { try await operation.completed() }
      // The task may not have been stored when the operation timed out. It is cancelled a moment later then.
      await poll { clock.sleepers == 0 }
    }
  }

  @Test func aTimeoutAfterACancellationEndsTheOperationAndAddsNothing() async {
    for reason in [nil, TestError("no more")] {
      let operation = held(.seconds(1))
      await begin(operation, operation.begun)
      if let reason { operation.cancel(with: reason) } else { operation.cancel() }
      clock.advance(by: .seconds(1))
      #expect(operation.isFinished && operation.errors as? [TestError] == reason.map { [$0] } ?? [])
    }
  }

  @Test(arguments: [Duration.zero, .seconds(-1), .shortest])
  func oneThatHasNoTimeDoesNotExecute(_ timeout: Duration) async {
    let block = timed(unexecuted(), timeout)
    block.addCondition(OperationCondition(name: "not asked") { _ in Issue.record("evaluated") })
    block.addObserver(OperationObserver(didStart: { _ in Issue.record("started") }))
    await #expect(throws: OperationError(.timedOut, "")) { try await queue.run(block) }
    let member = unexecuted()
    await #expect(throws: OperationError(.timedOut, "")) {
      try await queue.run(timed(GroupOperation([member]), timeout))
    }
    await member.finished()
  }

  @Test func theTimeBeginsWhenTheObserversHaveHeardOfTheStartAndMayBeSetByThem() async {
    let operation = held(.seconds(1))
    let sleepers = Journal<Int>()
    operation.addObserver(
      OperationObserver(didStart: { [clock] operation in
        sleepers.write(clock.sleepers)
        operation.timeout = .seconds(9)
      })
    )
    await begin(operation, operation.begun)
    clock.advance(by: .seconds(8))
    #expect(sleepers.entries == [0] && clock.sleepers == 1 && operation.isExecuting)
    clock.advance(by: .seconds(1))
    #expect(operation.isFinished)
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

  @Test func theTimeoutOfAGroupNamesWhatStillExecutesAndKeepsTheFailures() async {
    let held = (0..<8).map { HeldOperation().named("page \($0)") }
    let failing = AsyncBlockOperation { $0.finish(with: TestError("gone")) }.named("page 8")
    let stubborn = StoppedOperation(reporting: TestError("stopped")).named("page 9")
    let waiting = AsyncOperation().named("index")
    held ==> waiting
    let group = timed(GroupOperation(held + [failing, stubborn, waiting]).named("Import"), .seconds(5))
    await begin(group, stubborn.begun)
    for operation in held { await operation.begun.opened() }
    await poll { group.engine.state.withLock { $0.members.count == 10 && $0.schedule.waitingResults == nil } }
    clock.advance(by: .seconds(5))
    let error = await #expect(throws: OperationError.self) { try await group.completed() }
    #expect(
      error?.message == "“Import” was cancelled because it took longer than 5 seconds. Still executing: “page 0”, "
        + "“page 1”, “page 2”, “page 3”, “page 4”, “page 5”, “page 6”, “page 7” and 1 other."
    )
    let causes = error?.underlyingErrors.map { "\($0)" }
    #expect(causes == ["Import › page 8: gone", "Import › page 9: stopped"])
    #expect(group.failures.map(\.path) == [["Import"]])
    for operation in held { operation.gate.open() }
  }

  @Test func aGroupThatTimesOutHasFinishedButWindsItsMembersDown() async {
    let (stubborn, waiting) = (HeldOperation(), unexecuted())
    stubborn ==> waiting
    let group = timed(GroupOperation([stubborn, waiting]).named("Import"), .seconds(5))
    await begin(group, stubborn.begun)
    clock.advance(by: .seconds(5))
    #expect(group.isFinished && stubborn.isCancelled && !stubborn.isFinished)
    await group.finished()
    await waiting.finished()
    for _ in 0..<2 {
      let late = unexecuted()
      group.addOperation(late)
      await late.finished()
      #expect(late.isCancelled)
      await stubborn.finished(opening: stubborn.gate)
    }
    #expect(group.failures.map(\.path) == [["Import"]])
  }

  @Test func aGroupThatTimesOutBeforeItsMembersBeginFinishesThem() async {
    let member = unexecuted()
    let group = timed(GroupOperation([member]), nil)
    group.addObserver(
      OperationObserver(didStart: { [clock] group in
        group.timeout = .seconds(1)
        clock.advance(by: .seconds(1))
      })
    )
    queue.addOperation(group)
    await member.finished()
    #expect(member.isCancelled && group.isFinished)
  }

  @Test func aSuspendedGroupsTimeBeginsAtOnce() async {
    let group = timed(GroupOperation([AsyncOperation()]), .seconds(1))
    group.isSuspended = true
    queue.addOperation(group)
    await clock.advance(by: .seconds(1), sleepers: 1)
    await group.finished()
  }

  @Test func nestedGroupThatTimedOut_isReleasedAndTheOuterOneGoesOn() async {
    let live = LiveCount()
    do {
      let (stuck, token) = (HeldOperation(), LiveCount.Token(live))
      // The gate belongs to the operation, and so does the token.
      stuck.gate.whenOpen { withExtendedLifetime(token) {} }
      let inner = CountedGroup(live, [stuck, AsyncOperation()]).named("inner")
      inner.timeout = .seconds(1)
      let waiting = AsyncOperation()
      inner ==> waiting
      let outer = timed(CountedGroup(live, [inner, waiting]).named("outer"), .seconds(2))
      await begin(outer, stuck.begun)
      clock.advance(by: .seconds(1))
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

  @Test func aRetryThatWaitedForASlotDoesNotKeepItEither() async {
    let (live, stuck) = (LiveCount(), HeldOperation())
    do {
      let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { _ in
        ResultOperation<Int> { throw TestError("again") }
      }
      let group = timed(CountedGroup(live, [retry, stuck]), .seconds(5))
      group.maxConcurrentOperationCount = 1
      await begin(group, stuck.begun)
      clock.advance(by: .seconds(1))
      clock.advance(by: .seconds(4))
      await group.finished()
    }
    await live.none()
    stuck.gate.open()
  }

  // MARK: Clocks

  @Test func membersTakeTheirGroupsClock() {
    let own = ManualClock()
    let (plain, special) = (AsyncOperation(), AsyncOperation())
    special.clock = own
    let outer = GroupOperation([GroupOperation([plain, special])])
    #expect(plain.clock is ContinuousClock)
    outer.clock = clock
    #expect(plain.clock as? ManualClock === clock && special.clock as? ManualClock === own)
  }

  @Test func membersKeepTheClockWhenTheyHaveLeftTheGroup() async throws {
    let (member, attempt) = (AsyncOperation(), ResultOperation { 1 })
    let retry = RetryOperation(attempts: 2) { _ in attempt }
    try await queue.run(timed(GroupOperation([GroupOperation([member]), retry]), nil))
    #expect(member.clock as? ManualClock === clock && attempt.clock as? ManualClock === clock)
  }
}
