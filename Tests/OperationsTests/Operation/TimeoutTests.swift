import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct TimeoutTests {
  private let queue = OperationQueue()
  private let clock = ManualClock()

  private func held(_ timeout: Duration?) -> HeldOperation {
    let operation = HeldOperation().named("slow")
    operation.clock = clock
    operation.timeout = timeout
    return operation
  }

  @Test func itFreesTheQueueThoughTheWorkNeverFinishes() async {
    let lane = OperationQueue.limited(to: 1)
    let operation = held(.seconds(30))
    let next = AsyncOperation()
    lane.addOperations([operation, next])
    await operation.begun.opened()
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(29))
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
    queue.addOperation(operation)
    await operation.begun.opened()
    await clock.waitForSleepers(1)
    operation.gate.open()
    try await operation.completed()
    #expect(clock.sleepers == 0)
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
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(50))
    await operation.begun.opened()
    #expect(operation.isExecuting)
    clock.advance(by: .seconds(1))
    #expect(operation.isFinished)
  }

  @Test func whatTheWorkReportsWhileItIsBeingStoppedIsACauseOfTheTimeout() async {
    for _ in 0..<200 {
      let operation = StoppedOperation(reporting: TestError("stopped"))
      operation.clock = clock
      operation.timeout = .seconds(1)
      let run = Task { try await queue.run(operation) }
      await operation.begun.opened()
      await clock.waitForSleepers(1)
      clock.advance(by: .seconds(1))
      let error = await #expect(throws: OperationError.self) { try await run.value }
      #expect(error?.code == .timedOut && error?.underlyingErrors as? [TestError] == [TestError("stopped")])
      #expect(operation.errors.count == 1)
    }
  }

  @Test func aTaskThatThrowsAnErrorOfItsOwnWhenItIsStoppedHasTimedOut() async {
    for _ in 0..<2000 {
      let operation = TaskOperation { [clock] in
        do { try await clock.sleep(for: .seconds(100)) } catch { throw TestError("stopped") }
      }
      operation.clock = clock
      operation.timeout = .seconds(1)
      queue.addOperation(operation)
      await clock.waitForSleepers(2)
      clock.advance(by: .seconds(1))
      await #expect(throws: OperationError(.timedOut, "")) { try await operation.completed() }
    }
  }

  @Test func anErrorThatOnlySaysCancelledIsNoCauseOfATimeout() async {
    let operation = StoppedOperation(reporting: POSIXError(.ECANCELED))
    operation.clock = clock
    operation.timeout = .seconds(1)
    queue.addOperation(operation)
    await operation.begun.opened()
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    #expect((operation.errors.first as? OperationError)?.underlyingErrors.isEmpty == true)
    await operation.finished()
  }

  @Test func aTimeoutAfterACancellationEndsTheOperationAndAddsNothing() async {
    for reason in [nil, TestError("no more")] {
      let operation = held(.seconds(1))
      queue.addOperation(operation)
      await operation.begun.opened()
      await clock.waitForSleepers(1)
      if let reason { operation.cancel(with: reason) } else { operation.cancel() }
      clock.advance(by: .seconds(1))
      #expect(operation.isFinished && operation.errors as? [TestError] == reason.map { [$0] } ?? [])
    }
  }

  @Test func retryIfSeesTheTimeout() async {
    for _ in 0..<200 {
      let attempt = StoppedOperation(reporting: TestError("stopped"))
      let seen = Journal<Bool>()
      let retry = RetryOperation(
        attempts: 2,
        retryIf: { error, _ in
          seen.write(OperationError.Code.timedOut ~= error)
          return false
        },
        { _ in attempt }
      )
      attempt.timeout = .seconds(1)
      retry.clock = clock
      queue.addOperation(retry)
      await attempt.begun.opened()
      await clock.waitForSleepers(1)
      clock.advance(by: .seconds(1))
      await #expect(throws: OperationError(.timedOut, "")) { try await retry.completed() }
      #expect(seen.entries == [true])
    }
  }

  @Test func theTimeoutOfAGroupNamesWhatStillExecutesAndKeepsTheFailures() async {
    let held = (0..<10).map { HeldOperation().named("page \($0)") }
    let failing = AsyncBlockOperation { $0.finish(with: TestError("gone")) }.named("page 10")
    let waiting = AsyncOperation().named("index")
    held ==> waiting
    let stubborn = StoppedOperation(reporting: TestError("stopped"))
    let group = GroupOperation(held + [failing, stubborn.named("page 11"), waiting]).named("Import")
    group.clock = clock
    group.timeout = .seconds(5)
    let run = Task { try await queue.run(group) }
    for operation in held { await operation.begun.opened() }
    await stubborn.begun.opened()
    await failing.finished()
    await clock.waitForSleepers(1)
    while group.failures.isEmpty { await Task.yield() }
    clock.advance(by: .seconds(5))
    let error = await #expect(throws: OperationError.self) { try await run.value }
    #expect(
      error?.message == "“Import” was cancelled because it took longer than 5.0 seconds. Still executing: “page 0”, "
        + "“page 1”, “page 2”, “page 3”, “page 4”, “page 5”, “page 6”, “page 7” and 3 others."
    )
    let causes = error?.underlyingErrors.map { "\($0)" }
    #expect(causes == ["Import › page 10: gone", "Import › page 11: stopped"])
    #expect(group.failures.map(\.path) == [["Import"]])
    for operation in held { operation.gate.open() }
  }

  @Test func didCancelHearsOfItAndMayFinishItself() async {
    final class Obedient: AsyncOperation, @unchecked Sendable {
      let begun = Gate()
      override func execute() { begun.open() }
      override func didCancel() { finish(with: TestError("stopped")) }
    }
    let operation = Obedient()
    operation.clock = clock
    operation.timeout = .seconds(1)
    queue.addOperation(operation)
    await operation.begun.opened()
    clock.advance(by: .seconds(1))
    #expect(operation.errors as? [OperationError] == [OperationError(.timedOut, "")])
    await operation.finished()
  }

  @Test func aTaskIsCancelledByIt() async {
    let operation = TaskOperation { [clock] in try await clock.sleep(for: .seconds(100)) }
    operation.clock = clock
    operation.timeout = .seconds(1)
    queue.addOperation(operation)
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    await #expect(throws: OperationError.self) { try await operation.value }
    #expect(clock.sleepers == 0)
  }

  @Test(arguments: [Duration.zero, .seconds(-1)])
  func oneThatHasNoTimeDoesNotExecute(_ timeout: Duration) async {
    let block = AsyncBlockOperation { _ in Issue.record("executed") }
    block.timeout = timeout
    block.addCondition(OperationCondition(name: "not asked") { _ in Issue.record("evaluated") })
    block.addObserver(OperationObserver(didStart: { _ in Issue.record("started") }))
    let error = await #expect(throws: OperationError.self) { try await queue.run(block) }
    #expect(error?.code == .timedOut)
    let member = AsyncBlockOperation { _ in Issue.record("executed") }
    let group = GroupOperation([member])
    group.timeout = timeout
    await #expect(throws: OperationError(.timedOut, "")) { try await queue.run(group) }
    await member.finished()
  }

  @Test func theTimeBeginsWhenTheObserversHaveHeardOfTheStart() async {
    let operation = held(.seconds(1))
    let sleepers = Journal<Int>()
    operation.addObserver(OperationObserver(didStart: { [clock] _ in sleepers.write(clock.sleepers) }))
    queue.addOperation(operation)
    await clock.waitForSleepers(1)
    #expect(sleepers.entries == [0])
    clock.advance(by: .seconds(1))
    await operation.finished()
  }

  @Test func whatAnObserverOfTheStartSetsCounts() async {
    let operation = held(.seconds(1))
    operation.addObserver(OperationObserver(didStart: { $0.timeout = .seconds(9) }))
    queue.addOperation(operation)
    await operation.begun.opened()
    clock.advance(by: .seconds(8))
    #expect(clock.sleepers == 1 && operation.isExecuting)
    clock.advance(by: .seconds(1))
    #expect(operation.isFinished)
  }

  @Test func setDuringExecutionItCountsFromThen() async {
    let operation = held(.seconds(10))
    queue.addOperation(operation)
    await operation.begun.opened()
    await clock.waitForSleepers(1)
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

  @Test func aTimeThatNeverEndsIsNoProblem() async throws {
    for clock in [ContinuousClock(), SuspendingClock(), clock, NarrowClock()] as [any Clock<Duration>] {
      let operation = AsyncBlockOperation { $0.finish() }
      operation.clock = clock
      operation.timeout = .seconds(Int64.max)
      try await queue.run(operation)
    }
  }

  @Test func theSystemsClockWorksToo() async {
    let operation = HeldOperation()
    operation.timeout = .milliseconds(1)
    queue.addOperation(operation)
    await #expect(throws: OperationError.self) { try await operation.completed() }
  }

  @Test func timedOutAtTheMomentItFinishesItFinishesOnce() async {
    for _ in 0..<300 {
      let finishes = Journal<Int>()
      let operation = held(.seconds(1))
      operation.addObserver(OperationObserver(didFinish: { _ in finishes.write(1) }))
      queue.addOperation(operation)
      await operation.begun.opened()
      await clock.waitForSleepers(1)
      await onThreads(2) { thread in if thread == 0 { clock.advance(by: .seconds(1)) } else { operation.gate.open() } }
      await operation.finished()
      #expect(finishes.count == 1)
      #expect(operation.isSuccessful || operation.errors as? [OperationError] == [OperationError(.timedOut, "")])
    }
  }

  // MARK: Groups

  @Test func aGroupThatTimesOutHasFinishedButWindsItsMembersDown() async {
    let stubborn = HeldOperation()
    let waiting = AsyncBlockOperation { _ in Issue.record("executed") }
    stubborn ==> waiting
    let group = GroupOperation("Import") {
      stubborn
      waiting
    }
    group.clock = clock
    group.timeout = .seconds(5)
    queue.addOperation(group)
    await stubborn.begun.opened()
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(5))
    #expect(group.isFinished && stubborn.isCancelled && !stubborn.isFinished)
    await group.finished()
    await waiting.finished()
    let late = AsyncBlockOperation { _ in Issue.record("executed") }
    group.addOperation(late)
    await late.finished()
    #expect(late.isCancelled)
    stubborn.gate.open()
    await stubborn.finished()
    let later = AsyncBlockOperation { _ in Issue.record("executed") }
    group.addOperation(later)
    await later.finished()
    #expect(group.failures.map(\.path) == [["Import"]])
  }

  @Test func aGroupThatTimesOutBeforeItsMembersBeginFinishesThem() async {
    let member = AsyncBlockOperation { _ in Issue.record("executed") }
    let group = GroupOperation([member])
    group.clock = clock
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

  @Test func aNestedGroupThatTimesOutLetsTheOuterOneGoOn() async throws {
    let stubborn = HeldOperation()
    let inner = GroupOperation("inner") { stubborn }
    inner.timeout = .seconds(5)
    let last = AsyncOperation()
    inner ==> last
    let outer = GroupOperation("outer") { last }
    outer.clock = clock
    let run = Task { try await queue.run(outer) }
    await stubborn.begun.opened()
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(5))
    let error = await #expect(throws: AggregateError.self) { try await run.value }
    #expect(error?.failures.map(\.path) == [["outer", "inner"]] && last.isSuccessful)
    stubborn.gate.open()
  }

  @Test func aGroupThatTimedOutDoesNotStayForMembersThatNeverFinish() async {
    let live = LiveCount()
    final class Stuck: AsyncOperation, @unchecked Sendable {
      let begun = Gate()
      let token: LiveCount.Token
      init(_ live: LiveCount) {
        token = LiveCount.Token(live)
        super.init()
      }
      override func execute() { begun.open() }
    }
    do {
      let stuck = Stuck(live)
      let inner = CountedGroup(live, [stuck, AsyncOperation()])
      let waiting = AsyncOperation()
      inner ==> waiting
      let group = CountedGroup(live, [inner, waiting])
      group.clock = clock
      inner.timeout = .seconds(1)
      group.timeout = .seconds(2)
      queue.addOperation(group)
      await stuck.begun.opened()
      clock.advance(by: .seconds(1))
      await group.finished()
    }
    await live.none()
  }

  @Test func oneThatHasBeenReleasedStillFinishesLateMembers() async {
    for _ in 0..<50 {
      let stubborn = HeldOperation()
      let late = AsyncBlockOperation { _ in Issue.record("executed") }
      do {
        let group = GroupOperation([stubborn])
        group.clock = clock
        group.timeout = .seconds(1)
        queue.addOperation(group)
        await stubborn.begun.opened()
        await clock.waitForSleepers(1)
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
    let live = LiveCount()
    let stuck = HeldOperation()
    do {
      let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { _ in
        ResultOperation<Int> { throw TestError("again") }
      }
      let group = CountedGroup(live, [retry, stuck])
      group.clock = clock
      group.timeout = .seconds(5)
      group.maxConcurrentOperationCount = 1
      queue.addOperation(group)
      await stuck.begun.opened()
      clock.advance(by: .seconds(1))
      clock.advance(by: .seconds(4))
      await group.finished()
    }
    await live.none()
    stuck.gate.open()
  }

  // MARK: Clocks

  @Test func membersKeepTheClockWhenTheyHaveLeftTheGroup() async throws {
    let member = AsyncOperation()
    let attempts = Journal<ResultOperation<Int>>()
    let retry = RetryOperation(attempts: 2) { number in
      let attempt = ResultOperation { number }
      attempts.write(attempt)
      return attempt
    }
    let group = GroupOperation([GroupOperation([member]), retry])
    group.clock = clock
    try await queue.run(group)
    #expect(member.clock as? ManualClock === clock && attempts.entries[0].clock as? ManualClock === clock)
  }

  @Test func aSuspendedGroupsTimeBeginsAtOnce() async {
    let group = GroupOperation([AsyncOperation()])
    group.clock = clock
    group.timeout = .seconds(1)
    group.isSuspended = true
    queue.addOperation(group)
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    await group.finished()
  }

  @Test func membersTakeTheirGroupsClock() {
    let own = ManualClock()
    let (plain, special) = (AsyncOperation(), AsyncOperation())
    special.clock = own
    let inner = GroupOperation([plain, special])
    let outer = GroupOperation([inner])
    #expect(plain.clock is ContinuousClock)
    outer.clock = clock
    #expect(plain.clock as? ManualClock === clock && special.clock as? ManualClock === own)
  }
}

/// A clock that counts nanoseconds in 64 bits, as many do: it overflows after three hundred years.
private struct NarrowClock: Clock {
  struct Instant: InstantProtocol {
    var nanoseconds: Int64

    func advanced(by duration: Duration) -> Self {
      Self(nanoseconds: nanoseconds + duration.components.seconds * 1_000_000_000)
    }

    func duration(to other: Self) -> Duration { .nanoseconds(other.nanoseconds - nanoseconds) }

    static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
  }

  var now: Instant { Instant(nanoseconds: 1) }
  var minimumResolution: Duration { .nanoseconds(1) }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws { try await Gate().openedOrCancelled() }
}

extension Gate {
  fileprivate func openedOrCancelled() async throws {
    await withTaskCancellationHandler {
      await opened()
    } onCancel: {
      open()
    }
    try Task.checkCancellation()
  }
}
