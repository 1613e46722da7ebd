import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct DelayOperationTests {
  private let clock = ManualClock()

  @Test(arguments: [false, true]) func cancelled_itEndsAtOnceAndLeavesNoTimer(whileTheTimerStarts: Bool) async {
    let delay = DelayOperation(.seconds(10))
    delay.clock = clock
    if whileTheTimerStarts { delay.clock = CancellingClock(clock: clock, operation: delay) }
    OperationQueue().addOperation(delay)
    if !whileTheTimerStarts {
      await clock.waitForSleepers(1)
      delay.cancel()
      #expect(delay.isFinished && delay.isCancelled)
    }
    await delay.finished()
    // The thread that started the timer may not have kept it yet.
    await poll { clock.sleepers == 0 }
    // The clock refers to the operation.
    delay.clock = clock
  }

  @Test(arguments: [Duration.zero, .seconds(-5), .shortest])
  func noTimeIsOverAtOnce(_ duration: Duration) async throws {
    try await OperationQueue().run(DelayOperation(duration))
  }
}

/// Cancels the operation in the moment in which a timer is made for it.
private struct CancellingClock: TimerClock {
  let clock: ManualClock
  let operation: AsyncOperation

  var now: ManualClock.Instant { clock.now }
  var minimumResolution: Duration { .zero }

  func sleep(until deadline: ManualClock.Instant, tolerance: Duration?) async throws {}

  func call(after delay: Duration, isTimeout: Bool, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let cancellation = clock.call(after: delay, isTimeout: isTimeout, body)
    operation.cancel()
    return cancellation
  }
}
