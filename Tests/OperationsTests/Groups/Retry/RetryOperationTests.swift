import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RetryOperationTests {
  private let queue = OperationQueue()
  private let clock = ManualClock()
  private let journal = Journal<String>()

  /// Fails until the given attempt.
  private func attempt(_ number: Int, succeedingAt success: Int) -> ResultOperation<Int> {
    ResultOperation { [journal] in
      journal.write("attempt \(number)")
      if number < success { throw TestError("\(number)") }
      return number
    }
  }

  /// A retry whose first attempt has begun, and is to be the only one.
  private func retryWithHeldAttempt() async -> (RetryOperation<Int>, HeldResult) {
    let attempt = HeldResult()
    let retry = RetryOperation(attempts: 5) { number in
      #expect(number == 1)
      return attempt
    }
    queue.addOperation(retry)
    await attempt.begun.opened()
    return (retry, attempt)
  }

  @Test func itTriesUntilOneSucceeds() async throws {
    let retry = RetryOperation(attempts: 5) { attempt($0, succeedingAt: 3) }
    #expect(try await queue.run(retry) == 3)
    #expect(journal.entries == ["attempt 1", "attempt 2", "attempt 3"] && retry.isSuccessful)
    #expect(retry.attemptErrors as? [TestError] == [TestError("1"), TestError("2")])
  }

  @Test func attemptsCountsAllTriesAndTheLastErrorIsTheError() async {
    let retry = RetryOperation(attempts: 3) { attempt($0, succeedingAt: 9) }
    await #expect(throws: TestError("3")) { try await queue.run(retry) }
    #expect(journal.count == 3 && retry.errors.count == 1 && !retry.isCancelled)
    #expect(retry.attemptErrors as? [TestError] == ["1", "2", "3"].map(TestError.init))
  }

  @Test func retryIfSeesTheErrorAndTheAttempt() async {
    let seen = Journal<String>()
    let retry = RetryOperation(
      attempts: 9,
      retryIf: { error, attempt in
        seen.write("\(error) \(attempt)")
        return attempt < 2
      },
      { attempt($0, succeedingAt: 9) }
    )
    await #expect(throws: TestError("2")) { try await queue.run(retry) }
    #expect(seen.entries == ["1 1", "2 2"])
  }

  @Test func theBackoffFollowsTheClock() async throws {
    let backoff = Backoff.exponential(initial: .seconds(1), cap: .seconds(60))
    let retry = RetryOperation(attempts: 3, backoff: backoff) { attempt($0, succeedingAt: 3) }
    retry.clock = clock
    queue.addOperation(retry)
    await clock.waitForSleepers(1)
    #expect(journal.count == 1 && retry.isExecuting)
    clock.advance(by: .seconds(1))
    await journal.reaches(2)
    await clock.waitForSleepers(1)
    clock.advance(by: .milliseconds(1999))
    #expect(clock.sleepers == 1)
    clock.advance(by: .milliseconds(1))
    #expect(try await retry.value == 3)
  }

  @Test func retryIfMayAskForADelayOfItsOwn() async throws {
    let retry = RetryOperation(
      attempts: 3,
      backoff: .constant(.seconds(1000)),
      retryIf: { _, attempt in attempt == 1 ? .retry(after: .seconds(5)) : .stop },
      { attempt($0, succeedingAt: 2) }
    )
    retry.clock = clock
    queue.addOperation(retry)
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(5))
    #expect(try await retry.value == 2)
  }

  @Test func aPauseKeepsNoSlotOfAGroup() async throws {
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { attempt($0, succeedingAt: 2) }
    let others = (0..<3).map { NoteOperation("other \($0)", journal) }
    let group = GroupOperation([retry] + others)
    group.clock = clock
    group.maxConcurrentOperationCount = 1
    let run = Task { try await queue.run(group) }
    await journal.reaches(4)
    await clock.waitForSleepers(1)
    #expect(retry.isExecuting)
    clock.advance(by: .seconds(1))
    try await run.value
    #expect(journal.entries == ["attempt 1", "other 0", "other 1", "other 2", "attempt 2"])
  }

  @Test func afterAPauseItWaitsForASlot() async throws {
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { attempt($0, succeedingAt: 2) }
    let held = HeldOperation()
    let group = GroupOperation([retry, held])
    group.clock = clock
    group.maxConcurrentOperationCount = 1
    let run = Task { try await queue.run(group) }
    await held.begun.opened()
    clock.advance(by: .seconds(1))
    #expect(journal.count == 1 && retry.isExecuting)
    held.gate.open()
    try await run.value
    #expect(journal.entries == ["attempt 1", "attempt 2"])
  }

  @Test func aSuspendedGroupGoesOnWithItWhenItIsResumed() async throws {
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { attempt($0, succeedingAt: 2) }
    let group = GroupOperation([retry])
    group.clock = clock
    let run = Task { try await queue.run(group) }
    await clock.waitForSleepers(1)
    group.isSuspended = true
    clock.advance(by: .seconds(1))
    #expect(journal.count == 1)
    group.isSuspended = false
    try await run.value
    #expect(journal.count == 2)
  }

  // MARK: Cancelling

  @Test func cancelledInAPauseItEndsAtOnce() async {
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { attempt($0, succeedingAt: 2) }
    retry.clock = clock
    queue.addOperation(retry)
    await clock.waitForSleepers(1)
    retry.cancel()
    #expect(retry.isFinished && clock.sleepers == 0)
    await #expect(throws: CancellationError.self) { try await retry.value }
    #expect(journal.count == 1 && retry.attemptErrors as? [TestError] == [TestError("1")])
  }

  @Test func cancelledInAPauseInAGroupItFreesNobodysSlotAndTakesNone() async throws {
    for isOver in [false, true] {
      let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { _ in
        ResultOperation<Int> { throw TestError("x") }
      }
      let held = HeldOperation()
      let waiting = ResultOperation { held.isFinished }
      let group = GroupOperation([retry, held, waiting])
      group.clock = clock
      group.maxConcurrentOperationCount = 1
      queue.addOperation(group)
      await held.begun.opened()
      if isOver { clock.advance(by: .seconds(1)) }
      retry.cancel()
      #expect(retry.isFinished)
      // Behind what is left of the retry.
      group.addOperation(AsyncOperation())
      // Time for a slot to be taken that is none.
      for _ in 0..<20 { try await queue.run(AsyncOperation()) }
      held.gate.open()
      await group.finished()
      #expect(group.errors.isEmpty && (try? waiting.result?.get()) == true)
    }
  }

  @Test func inAPauseOneThatHasAKeyKeepsItsSlotForWhoHasTheSlotMightWantTheKey() async throws {
    let domain = ExclusivityDomain()
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { attempt($0, succeedingAt: 2) }
    let wanting = NoteOperation("wanting", journal)
    let inner = GroupOperation {}
    let held = HeldOperation()
    held ==> inner
    inner.addOperation(wanting.exclusive("key", in: domain))
    let group = GroupOperation {}
    group.clock = clock
    group.maxConcurrentOperationCount = 1
    group.addOperation(retry.exclusive("key", in: domain))
    group.addOperation(inner)
    queue.addOperations([held, group])
    await clock.waitForSleepers(1)
    held.gate.open()
    // Time for a slot to be taken that is none.
    for _ in 0..<20 { try await queue.run(AsyncOperation()) }
    #expect(!inner.isExecuting)
    clock.advance(by: .seconds(1))
    await group.finished()
    #expect(group.isSuccessful && journal.entries.last == "wanting")
  }

  @Test func cancelledInAPauseOneThatHasAKeyGivesItsSlotBack() async {
    let domain = ExclusivityDomain()
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { attempt($0, succeedingAt: 2) }
    let after = NoteOperation("after", journal)
    let held = HeldOperation()
    held ==> after
    let group = GroupOperation {}
    group.clock = clock
    group.maxConcurrentOperationCount = 1
    group.addOperation(retry.exclusive("key", in: domain))
    group.addOperation(after)
    queue.addOperations([held, group])
    await clock.waitForSleepers(1)
    held.gate.open()
    retry.cancel()
    await group.finished()
    #expect(after.isSuccessful && clock.sleepers == 0)
  }

  @Test func cancellingTheGroupEndsThePause() async {
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { attempt($0, succeedingAt: 2) }
    let group = GroupOperation([retry])
    group.clock = clock
    queue.addOperation(group)
    await clock.waitForSleepers(1)
    group.cancel()
    await group.finished()
    #expect(journal.count == 1 && clock.sleepers == 0)
  }

  @Test func cancelledJustBeforeAPauseThereIsNone() async {
    let box = Journal<RetryOperation<Int>>()
    let retry = RetryOperation<Int>(
      attempts: 2,
      backoff: .constant(.seconds(1)),
      retryIf: { _, _ in
        box.entries[0].cancel()
        return true
      },
      { _ in throw TestError("x") }
    )
    box.write(retry)
    retry.clock = clock
    queue.addOperation(retry)
    await retry.finished()
    #expect(retry.isCancelled && clock.sleepers == 0)
  }

  @Test func cancellingCancelsTheAttempt() async {
    let (retry, attempt) = await retryWithHeldAttempt()
    retry.cancel()
    #expect(attempt.isCancelled && !retry.isFinished)
    attempt.finish()
    await #expect(throws: CancellationError.self) { try await retry.value }
  }

  @Test func anAttemptThatIsCancelledByItselfCancelsTheRetry() async {
    let (retry, attempt) = await retryWithHeldAttempt()
    attempt.cancel()
    attempt.finish()
    await #expect(throws: CancellationError.self) { try await retry.value }
    #expect(retry.isCancelled && retry.attemptErrors.isEmpty)
  }

  @Test func anAttemptThatTimesOutIsTriedAgain() async throws {
    let begun = Journal<Int>()
    let retry = RetryOperation(attempts: 2) { number in
      if number == 2 { return ResultOperation { 2 } }
      let attempt = HeldResult()
      attempt.timeout = .seconds(1)
      attempt.addObserver(OperationObserver(didStart: { _ in begun.write(number) }))
      return attempt
    }
    retry.clock = clock
    queue.addOperation(retry)
    await begun.reaches(1)
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await retry.value == 2)
    #expect(retry.attemptErrors as? [OperationError] == [OperationError(.timedOut, "")])
  }

  @Test func itsOwnTimeoutCountsOverEverything() async {
    let retry = RetryOperation(attempts: 100, backoff: .constant(.seconds(1))) { attempt($0, succeedingAt: 1000) }
    retry.clock = clock
    retry.timeout = .milliseconds(1500)
    queue.addOperation(retry)
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    await journal.reaches(2)
    await clock.waitForSleepers(2)
    clock.advance(by: .seconds(1))
    let error = await #expect(throws: OperationError.self) { try await retry.value }
    #expect(error?.code == .timedOut && journal.count == 2 && clock.sleepers == 0)
  }

  @Test func finishedFromOutsideItCancelsTheAttempt() async throws {
    let (retry, attempt) = await retryWithHeldAttempt()
    retry.finish(returning: 7)
    #expect(try await retry.value == 7)
    #expect(attempt.isCancelled)
    attempt.finish()
    await attempt.finished()
    #expect(retry.attemptErrors.isEmpty)
  }

  @Test func anErrorThatAsksTheRetryWhenItGoes() async throws {
    // The errors of the attempt before are let go of without a lock held.
    final class Curious: Error, @unchecked Sendable {
      weak var retry: AsyncOperation?
      deinit { _ = retry?.isCancelled }
    }
    let box = Journal<RetryOperation<Int>>()
    let retry = RetryOperation(attempts: 3, backoff: .constant(.seconds(1))) { number in
      let cache = ResultOperation<Int> {
        let error = Curious()
        error.retry = box.entries[0]
        throw error
      }
      let page = ResultOperation<Int> { if number < 3 { throw TestError("again") } else { number } }
      return cache.pass(to: page, input: .optional) { _, _ in }
    }
    box.write(retry)
    retry.clock = clock
    queue.addOperation(retry)
    for _ in 0..<2 {
      await clock.waitForSleepers(1)
      clock.advance(by: .seconds(1))
    }
    #expect(try await retry.value == 3)
  }

  // MARK: What an attempt is

  @Test func makingTheAttemptMayFail() async {
    let retry = RetryOperation<Int>(attempts: 2) { number in throw TestError("\(number)") }
    await #expect(throws: TestError("2")) { try await queue.run(retry) }
    #expect(retry.attemptErrors.count == 2)
    let stubborn = RetryOperation<Int>(attempts: 50_000) { _ in throw TestError("never") }
    await #expect(throws: TestError("never")) { try await queue.run(stubborn) }
  }

  @Test func anAttemptBringsAlongWhatItWaitsFor() async throws {
    let retry = RetryOperation(attempts: 2) { [journal] number in
      ResultOperation {
        journal.write("download \(number)")
        if number == 1 { throw TestError("no network") }
        return "text"
      }.map(\.count)
    }
    #expect(try await queue.run(retry) == 4)
    #expect(retry.attemptErrors as? [TestError] == [TestError("no network")])
  }

  @Test func manyTriesDoNotNest() async throws {
    let retry = RetryOperation(attempts: 5000) { number in
      ResultOperation {
        if number < 5000 { throw TestError("again") }
        return number
      }
    }
    #expect(try await queue.run(retry) == 5000)
  }

  @Test func manyOnAQueueOfOneAndInAGroupOfTwo() async throws {
    let retries = (0..<100).map { index in
      RetryOperation(attempts: 4) { number in
        TaskOperation {
          if number < 1 + index % 4 { throw TestError("\(index)") }
          return index
        }
      }
    }
    let group = GroupOperation(Array(retries[..<50]))
    group.maxConcurrentOperationCount = 2
    let lane = OperationQueue.limited(to: 1)
    lane.addOperations(Array(retries[50...]))
    try await queue.run(group)
    #expect(try await queue.run(graphEndingIn: collect(retries)) == Array(0..<100))
  }

  @Test func cancelledAtAnyMomentItFinishesOnceAndKeepsTheSlotsRight() async {
    for round in 0..<300 {
      let clock = ManualClock()
      let retries = (0..<4).map { _ in
        RetryOperation(attempts: 4, backoff: .constant(.seconds(1))) { _ in ResultOperation<Int> { throw TestError("") }
        }
      }
      let notes = (0..<4).map { _ in AsyncOperation() }
      let group = GroupOperation(retries + notes)
      group.clock = clock
      group.maxConcurrentOperationCount = 1
      queue.addOperation(group)
      await onThreads(2) { thread in
        for index in 0..<4 {
          if thread == 0 { clock.advance(by: .seconds(1)) } else { retries[(index + round) % 4].cancel() }
        }
      }
      await group.finished()
      #expect(retries.allSatisfy(\.isFinished) && notes.allSatisfy(\.isSuccessful))
    }
  }

  @Test func nothingIsLeftAlive() async {
    let live = LiveCount()
    final class Stuck: ResultOperation<Int>, @unchecked Sendable {
      let token: LiveCount.Token
      init(_ token: LiveCount.Token) {
        self.token = token
        super.init()
      }
      override func execute() {}
    }
    do {
      let token = LiveCount.Token(live)
      let retry = RetryOperation(attempts: 2) { _ in ResultOperation { withExtendedLifetime(token) { 1 } } }
      await queue.run(settling: [retry])
      let cancelled = RetryOperation(attempts: 2) { _ in ResultOperation { withExtendedLifetime(token) { 1 } } }
      cancelled.cancel()
      await queue.run(settling: [cancelled])
      // An attempt that never finishes, in one that timed out.
      let begun = Gate()
      let stuck = RetryOperation(attempts: 2) { _ in
        let attempt = Stuck(token)
        attempt.addObserver(OperationObserver(didStart: { _ in begun.open() }))
        return attempt
      }
      stuck.clock = clock
      stuck.timeout = .seconds(1)
      queue.addOperation(stuck)
      await begun.opened()
      await clock.waitForSleepers(1)
      clock.advance(by: .seconds(1))
      await stuck.finished()
    }
    await live.none()
  }

  @Test func ofTwoThatTakeInOneDependencyTheSecondWaitsForIt() async throws {
    for round in 0..<2_000 {
      let shared = ResultOperation { round }
      let both = (0..<2).map { number in RetryOperation(attempts: 1) { _ in shared.map { $0 + number } } }
      let queue = OperationQueue()
      await onThreads(2) { queue.addOperation(both[$0]) }
      for (number, operation) in both.enumerated() {
        await operation.finished()
        #expect(try operation.result?.get() == round + number)
      }
    }
  }
}

/// Finishes when the test says so.
private final class HeldResult: ResultOperation<Int>, @unchecked Sendable {
  let begun = Gate()
  override func execute() { begun.open() }
}
