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
    let retry = RetryOperation(
      attempts: 9,
      retryIf: { error, attempt in
        journal.write("\(error) \(attempt)")
        return attempt < 2
      },
      { attempt($0, succeedingAt: 9) }
    )
    await #expect(throws: TestError("2")) { try await queue.run(retry) }
    #expect(journal.entries == ["attempt 1", "1 1", "attempt 2", "2 2"])
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

  // MARK: Cancelling and finishing

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
    await queue.run(settling: [retry])
    #expect(retry.isCancelled && clock.sleepers == 0)
  }

  @Test func anAttemptThatTimesOutIsTriedAgain() async throws {
    let first = HeldResult()
    first.timeout = .seconds(1)
    let retry = RetryOperation(attempts: 2) { $0 == 1 ? first : ResultOperation { 2 } }
    retry.clock = clock
    await queue.add(retry, until: first.begun)
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    #expect(try await retry.value == 2)
    #expect(retry.attemptErrors as? [OperationError] == [OperationError(.timedOut, "")])
  }

  @Test func finishedFromOutsideItCancelsTheAttempt() async throws {
    let attempt = HeldResult()
    let retry = RetryOperation(attempts: 5) { _ in attempt }
    await queue.add(retry, until: attempt.begun)
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
    let stubborn = RetryOperation<Int>(attempts: isThorough ? 50_000 : 10_000) { _ in throw TestError("never") }
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
    let retry = RetryOperation(attempts: 1000) { attempt($0, succeedingAt: 1000) }
    #expect(try await queue.run(retry) == 1000)
  }

  @Test func manyOnAQueueOfOneAndInAGroupOfTwo() async throws {
    let retries = (0..<100).map { index in
      RetryOperation(attempts: 4) { number in
        TaskOperation { if number < 1 + index % 4 { throw TestError("\(index)") } else { index } }
      }
    }
    let group = GroupOperation(Array(retries[..<50]))
    group.maxConcurrentOperationCount = 2
    OperationQueue.limited(to: 1).addOperations(Array(retries[50...]))
    try await queue.run(group)
    #expect(try await queue.run(graphEndingIn: collect(retries)) == Array(0..<100))
  }

  @Test func nothingIsLeftAlive() async {
    /// Never finishes.
    final class Stuck: AsyncOperation, @unchecked Sendable {
      private let token: LiveCount.Token
      private let begun: Gate
      init(_ token: LiveCount.Token, _ begun: Gate) { (self.token, self.begun) = (token, begun) }
      override func execute() { begun.open() }
    }
    let live = LiveCount()
    do {
      let token = LiveCount.Token(live)
      let retries = (0..<2).map { _ in
        RetryOperation(attempts: 2) { _ in ResultOperation { withExtendedLifetime(token) { 1 } } }
      }
      retries[1].cancel()
      await queue.run(settling: retries)
      // An attempt that never finishes, in one that timed out.
      let begun = Gate()
      let stuck = RetryOperation(attempts: 2) { _ in Stuck(token, begun) }
      stuck.clock = clock
      stuck.timeout = .seconds(1)
      await queue.add(stuck, until: begun)
      await clock.waitForSleepers(1)
      clock.advance(by: .seconds(1))
      await stuck.finished()
    }
    await live.none()
  }
}

/// Finishes when the test says so.
private final class HeldResult: ResultOperation<Int>, @unchecked Sendable {
  let begun = Gate()
  override func execute() { begun.open() }
}
