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

  private func attempt(_ number: Int, succeedingAt success: Int) -> ResultOperation<Int> {
    ResultOperation { [journal] in
      journal.write("attempt \(number)")
      if number < success { throw TestError("\(number)") }
      return number
    }
  }

  @Test(arguments: [3, 1000])
  func itTriesUntilOneSucceeds(success: Int) async throws {
    let retry = RetryOperation(attempts: 1000) { attempt($0, succeedingAt: success) }
    #expect(try await queue.run(retry) == success)
    #expect(journal.entries == (1...success).map { "attempt \($0)" } && retry.isSuccessful)
    #expect(retry.failedAttempts == success - 1)
    #expect(retry.attemptErrors as? [TestError] == (1..<success).suffix(16).map { TestError("\($0)") })
  }

  @Test func anAttemptCanBeAFunction_whichIsCancelledWithTheRetry() async throws {
    let retry = RetryOperation(attempts: 3) { number in
      await Task.yield()
      if number < 2 { throw TestError("\(number)") }
      return number
    }
    #expect(try await queue.run(retry) == 2)
    let asynchronous = RetryOperation(attempts: 3) { number in
      await Task.yield()
      if number < 3 { throw TestError("\(number)") }
    }
    let withoutAValue = RetryOperation(attempts: 3) { if $0 < 3 { throw TestError("\($0)") } }
    let guarding = RetryOperation(attempts: 3) { number in guard number == 3 else { throw TestError("\(number)") } }
    // The type of several statements without a value is taken from the context.
    let stated = RetryOperation<Void>(attempts: 3) { number in
      let error = TestError("\(number)")
      if number < 3 { throw error }
    }
    let always: @Sendable (any Error, Int) -> Bool = { _, _ in true }
    let typed: RetryOperation<Void> = .init(attempts: 3, retryIf: always) { number in
      guard number < 3 else { return }
      throw TestError("\(number)")
    }
    for plain in [asynchronous, withoutAValue, guarding, stated, typed] {
      try await queue.run(plain)
      #expect(plain.failedAttempts == 2)
    }
    let endless = RetryOperation(attempts: 3) { _ in
      do { try await clock.sleep(for: .seconds(1)) } catch { throw POSIXError(.ECANCELED) }
    }
    queue.addOperation(endless)
    await clock.waitForSleepers(1)
    endless.cancel()
    await #expect(throws: CancellationError.self) { try await endless.completed() }
    #expect(endless.attemptErrors.isEmpty)
  }

  /// The task of an attempt may end before the thread that created it goes on. A few, so that it begins at once.
  @Test func functionsThatFailAtOnce_areTriedAgain() async {
    for _ in 0..<(isThorough ? 20_000 : 1_000) {
      let retries = (0..<2).map { _ in RetryOperation(attempts: 20) { if $0 < 20 { throw TestError("busy") } } }
      await queue.run(settling: retries)
      #expect(retries.allSatisfy { $0.isSuccessful && $0.failedAttempts == 19 })
    }
  }

  @Test func retryWhenDecidesWhatNoOtherClosureDecides() async throws {
    let retry = RetryOperation(
      attempts: 9,
      retryIf: { _, _ in true },
      retryWhen: { result, attempt in
        journal.write("\(result) \(attempt)")
        return attempt < 3 ? .retry(after: .zero) : .stop
      },
      { attempt($0, succeedingAt: 2) }
    )
    #expect(try await queue.run(retry) == 3)
    #expect(journal.entries == ["attempt 1", "attempt 2", "success(2) 2", "attempt 3", "success(3) 3"])
    let decide = { @Sendable (_: Result<Void, any Error>, attempt: Int) in attempt < 2 ? RetryDecision.retry : .stop }
    let function = RetryOperation(attempts: 9, retryWhen: decide) { _ in
      await Task.yield()
      throw TestError("last")
    }
    await #expect(throws: TestError("last")) { try await queue.run(function) }
    #expect(function.failedAttempts == 2)
  }

  @Test func attemptsWithoutANameAreNamedAfterTheRetry() async {
    let retry = RetryOperation(attempts: 2) { _ in GroupOperation([ResultOperation<Int> { throw TestError("boom") }]) }
    await queue.run(settling: [retry.named("page 3")])
    let error = await #expect(throws: AggregateError.self) { try await retry.completed() }
    #expect(error?.failures.map(\.path) == [["page 3", "page 3, attempt 2", "RetryOperationTests.swift, line 98"]])
  }

  @Test(arguments: [(4, 3), (2, 2)])
  func retryUnlessSeesTheValue(attempts: Int, value: Int) async throws {
    let isAcceptable = { @Sendable (value: Int) in value >= 3 }
    let retry = RetryOperation(attempts: attempts, retryUnless: isAcceptable) { attempt($0, succeedingAt: 2) }
    #expect(try await queue.run(retry) == value)
    #expect(retry.failedAttempts == 1 && journal.count == value && retry.isSuccessful)
  }

  @Test func retryIfSeesTheErrorAndTheAttempt() async {
    let decide = { @Sendable [journal] (error: any Error, attempt: Int) -> Bool in
      journal.write("\(error) \(attempt)")
      return attempt < 2
    }
    let retry = RetryOperation(attempts: 9, retryIf: decide) { attempt($0, succeedingAt: 9) }
    await #expect(throws: TestError("2")) { try await queue.run(retry) }
    #expect(journal.entries == ["attempt 1", "1 1", "attempt 2", "2 2"])
    #expect(retry.errors.count == 1 && !retry.isCancelled)
    #expect(retry.attemptErrors as? [TestError] == ["1", "2"].map(TestError.init))
  }

  // MARK: Cancelling and finishing

  @Test func cancelledJustBeforeAPauseThereIsNone() async {
    let box = Journal<RetryOperation<Int>>()
    let backoff = Backoff { _ in
      box.entries[0].cancel()
      return .seconds(1)
    }
    let retry = RetryOperation<Int>(attempts: 2, backoff: backoff) { _ in throw TestError("x") }
    box.write(retry)
    retry.clock = clock
    await queue.run(settling: [retry])
    #expect(retry.isCancelled && clock.sleepers == 0)
  }

  @Test(arguments: [true, false], [Duration.zero, .seconds(1)])
  func anAttemptThatTimesOut_doesNotOverlapTheNext(isTask: Bool, delay: Duration) async throws {
    let (begun, stopped, gate) = (Gate(), Gate(), Gate())
    let retry = RetryOperation(attempts: 2, backoff: .constant(delay)) { [journal] number in
      if number == 2 { return ResultOperation { journal.write("next attempt") } }
      let work = stubbornWork(asTask: isTask, begun, until: gate) { journal.write("work returns") }
      work.addObserver(didCancel: { _ in stopped.open() })
      work.timeout = .seconds(1)
      return work
    }
    retry.clock = clock
    queue.addOperation(retry)
    await begun.opened()
    await clock.advance(by: .seconds(1), sleepers: 1)
    await stopped.opened()
    // Gives the next attempt every opportunity, which has no thread to wait for.
    for _ in 0..<20 { try await OperationQueue().run(AsyncOperation()) }
    #expect(journal.entries.isEmpty && clock.sleepers == 0 && retry.isExecuting)
    gate.open()
    await clock.run(until: retry)
    try await retry.value
    #expect(journal.entries == ["work returns", "next attempt"])
    #expect(retry.attemptErrors as? [OperationError] == [OperationError(.timedOut, "")])
  }

  @Test func finishedFromOutsideItCancelsTheAttempt() async throws {
    let attempt = HeldOperation()
    let retry = await queue.add(RetryOperation(attempts: 5) { _ in attempt }, until: attempt.begun)
    retry.finish(returning: ())
    try await retry.value
    #expect(attempt.isCancelled)
    await attempt.finished(opening: attempt.gate)
    #expect(retry.attemptErrors.isEmpty)
  }

  /// An error that would deadlock if it were released with a lock held.
  private final class Curious: Error, @unchecked Sendable {
    private weak let retry: RetryOperation<Int>?

    init(_ retry: RetryOperation<Int>) { self.retry = retry }

    deinit { _ = retry.map { ($0.isCancelled, $0.failedAttempts) } }
  }

  @Test func anErrorThatAsksTheRetryWhenItIsForgotten() async {
    let box = Journal<RetryOperation<Int>>()
    let retry = RetryOperation<Int>(attempts: 20) { _ in throw Curious(box.entries[0]) }
    box.write(retry)
    await #expect(throws: Curious.self) { try await queue.run(retry) }
    #expect(retry.failedAttempts == 20 && retry.attemptErrors.count == 16)
  }

  @Test func anErrorThatAsksTheRetryWhenItsAttemptGoes() async throws {
    let box = Journal<RetryOperation<Int>>()
    let retry = RetryOperation(attempts: 3, backoff: .constant(.seconds(1))) { number in
      let cache = ResultOperation<Int> { throw Curious(box.entries[0]) }
      let page = ResultOperation<Int> { if number < 3 { throw TestError("again") } else { number } }
      return cache.pass(to: page, input: .optional) { _, _ in }
    }
    box.write(retry)
    retry.clock = clock
    queue.addOperation(retry)
    await clock.run(until: retry)
    #expect(try await retry.value == 3)
  }

  // MARK: What an attempt is

  @Test func anAttemptWhoseInputWasNeverSet_failsWithThat() async {
    let other = NoteOperation("other", journal, failing: TestError("unrelated"))
    let retry = RetryOperation<Int>(attempts: 1) { _ in
      let count = TransformOperation { (text: String) in text.count }
      other ==> count
      return count
    }
    await #expect(throws: OperationError.self) { try await queue.run(retry) }
    #expect(retry.errors.map { ($0 as? OperationError)?.code } == [.inputUnavailable])
  }

  @Test func nothingIsLeftAlive() async {
    let live = LiveCount()
    do {
      let (token, held) = (LiveCount.Token(live), HeldOperation())
      let retries = (0..<2).map { _ in
        RetryOperation(attempts: 2) { _ in ResultOperation { withExtendedLifetime(token) { 1 } } }
      }
      retries[1].cancel()
      await queue.run(settling: retries)
      // An attempt that never finishes, in one that timed out.
      held.addObserver(didFinish: { _ in withExtendedLifetime(token) {} })
      let stuck = RetryOperation(attempts: 2) { _ in held }
      stuck.clock = clock
      stuck.timeout = .seconds(1)
      await queue.add(stuck, until: held.begun)
      await clock.advance(by: .seconds(1), sleepers: 1)
      await stuck.finished()
    }
    await live.none()
  }

  // MARK: Repetitions

  @Test(arguments: [false, true])
  func failedRepetition_makesNoOther(inAGroup: Bool) async {
    let polling = RepeatOperation { number in
      let note = NoteOperation("\(number)", journal, failing: number == 2 ? TestError("two") : nil)
      return inAGroup ? GroupOperation([note]) : note
    }
    if inAGroup {
      let error = await #expect(throws: AggregateError.self) { try await queue.run(polling) }
      #expect(error?.errors(of: TestError.self) == [TestError("two")])
    } else {
      await #expect(throws: TestError("two")) { try await queue.run(polling) }
    }
    #expect(journal.entries == ["1", "2"] && !polling.isCancelled && polling.errors.count == 1)
  }

  @Test func manyRepetitions_doNotNestAndLeaveNothing() async throws {
    // If each cost a little more, the time limit would be over long before the last, or the stack used up.
    let (live, count) = (LiveCount(), isThorough ? 60_000 : 8_000)
    do {
      let polling = RepeatOperation { number in
        // The one that has just ended, and this one.
        if live.alive > 64 { Issue.record("\(live.alive) are alive") }
        return number <= count ? CountedOperation(live) : nil
      }
      try await queue.run(polling)
    }
    await live.none()
  }
}
