import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct BackoffTests {
  enum Kind: CaseIterable, Sendable { case retry, repetition }

  private let queue = OperationQueue()
  private let clock = ManualClock()
  private let journal = Journal<String>()

  /// Runs operations that write their number, with a delay after each. A repetition ends after a last delay.
  private func operation(_ kind: Kind, count: Int = 2, _ backoff: Backoff = .constant(.seconds(1))) -> AsyncOperation {
    switch kind {
    case .retry:
      RetryOperation(attempts: count, backoff: backoff) { number in
        ResultOperation { [journal] in
          journal.write("\(number)")
          if number < count { throw TestError("\(number)") }
        }
      }
    case .repetition:
      RepeatOperation(pausing: backoff) { $0 <= count ? NoteOperation("\($0)", journal) : nil }
    }
  }

  private func group(_ members: [Operation]) -> GroupOperation {
    let group = GroupOperation(members, maxConcurrentOperationCount: 1)
    group.clock = clock
    return group
  }

  @Test(arguments: Kind.allCases)
  func theDelaysFollowTheClock(_ kind: Kind) async throws {
    let operation = operation(kind, count: 3, .exponential(initial: .seconds(1), cap: .seconds(60)))
    operation.clock = clock
    queue.addOperation(operation)
    for (index, delay) in [1, 2, 4].prefix(kind == .retry ? 2 : 3).enumerated() {
      await clock.waitForSleepers(1)
      #expect(journal.count == index + 1 && operation.isExecuting)
      clock.advance(by: .seconds(delay) - .milliseconds(1))
      #expect(clock.sleepers == 1)
      clock.advance(by: .milliseconds(1))
    }
    try await operation.completed()
    #expect(journal.entries == ["1", "2", "3"])
  }

  // MARK: Slots

  @Test(arguments: Kind.allCases, [false, true])
  func cancelledInAGroup_itFinishesAtOnce_freesNobodysSlotAndTakesNone(_ kind: Kind, isOver: Bool) async throws {
    let (operation, held) = (operation(kind), HeldOperation())
    let waiting = ResultOperation { held.isFinished }
    let group = await queue.add(group([operation, held, waiting]), until: held.begun)
    await clock.waitForSleepers(1)
    if isOver { clock.advance(by: .seconds(1)) }
    operation.cancel()
    #expect(operation.isFinished && journal.count == 1)
    // The thread that started the timer may not have kept it yet.
    await poll { clock.sleepers == 0 }
    await #expect(throws: CancellationError.self) { try await operation.completed() }
    let attemptErrors = (operation as? RetryOperation<Void>)?.attemptErrors as? [TestError]
    #expect(attemptErrors == (kind == .retry ? [TestError("1")] : nil))
    // Behind what is left of the operation.
    group.addOperation(AsyncOperation())
    // Gives other threads the time to take a slot that is not free.
    for _ in 0..<20 { try await OperationQueue().run(AsyncOperation()) }
    await group.finished(opening: held.gate)
    #expect(group.errors.isEmpty && (try? waiting.result?.get()) == true)
  }

  // MARK: The end

  @Test(arguments: Kind.allCases)
  func itsOwnTimeoutCoversTheDelays(_ kind: Kind) async {
    let operation = operation(kind, count: 100)
    operation.clock = clock
    operation.timeout = .milliseconds(1500)
    queue.addOperation(operation)
    await clock.run(until: operation)
    let error = await #expect(throws: OperationError.self) { try await operation.completed() }
    #expect(error?.code == .timedOut && journal.count == 2)
    #expect(error?.underlyingErrors as? [TestError] == (kind == .retry ? ["1", "2"].map(TestError.init) : []))
    await poll { clock.sleepers == 0 }
  }

  @Test(arguments: Kind.allCases, [false, true])
  func cancelledWithWhatRunsOrByIt_endsWithoutErrors(_ kind: Kind, byWhatRuns: Bool) async {
    let held = HeldOperation()
    let make: @Sendable (Int) -> AsyncOperation = { number in
      #expect(number == 1)
      return held
    }
    let operation: AsyncOperation =
      switch kind {
      case .retry: RetryOperation(attempts: 5, make)
      case .repetition: RepeatOperation(make)
      }
    await queue.add(operation, until: held.begun)
    if byWhatRuns { held.cancel() } else { operation.cancel() }
    #expect(held.isCancelled && !operation.isFinished)
    held.gate.open()
    await #expect(throws: CancellationError.self) { try await operation.completed() }
    #expect(operation.isCancelled && operation.errors.isEmpty)
    if kind == .retry { #expect((operation as? RetryOperation<Void>)?.attemptErrors.isEmpty == true) }
  }

  // MARK: The lengths of the delays

  @Test func noneConstantOneOfYourOwnAndExponentialUpToTheCap() {
    #expect(Backoff.immediate.delay(after: 1) == .zero)
    #expect([1, 5].map { Backoff.constant(.seconds(2)).delay(after: $0) } == [.seconds(2), .seconds(2)])
    #expect(Backoff { .seconds($0 * $0) }.delay(after: 3) == .seconds(9))
    let backoff = Backoff.exponential(initial: .milliseconds(100), cap: .seconds(1))
    #expect(
      (1...6).map { backoff.delay(after: $0) } == [100, 200, 400, 800, 1000, 1000].map { Duration.milliseconds($0) }
    )
    #expect(backoff.delay(after: 100_000) == .seconds(1))
    #expect(Backoff.exponential(initial: .zero, cap: .seconds(1)).delay(after: 100_000) == .zero)
    #expect(
      Backoff.exponential(initial: .seconds(9), multiplier: 0.5, cap: .seconds(20)).delay(after: 2) == .seconds(4.5)
    )
    #expect(Backoff.exponential(initial: .seconds(9), cap: .seconds(2)).delay(after: 1) == .seconds(2))
  }

  @Test func jitterTakesAwayItsPartAtMost_andItsLeastPartDoesNotOverflow() {
    let backoff = Backoff.exponential(initial: .seconds(8), cap: .seconds(8), jitter: 0.5)
    let delays = (0..<500).map { _ in backoff.delay(after: 1) }
    #expect(delays.allSatisfy { $0 >= .seconds(4) && $0 <= .seconds(8) })
    #expect((delays.min() ?? .zero) < .seconds(5) && (delays.max() ?? .zero) > .seconds(7))
    let least = Backoff.exponential(initial: .longest, cap: .longest, jitter: 1e-17)
    for _ in 0..<100 { #expect(least.delay(after: 1) == .longest) }
  }
}
