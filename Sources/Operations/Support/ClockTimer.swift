import Foundation

/// A one-shot timer on any clock.
struct ClockTimer: Sendable {
  /// The longest delay, about 30 years. Every clock can add it to its current time.
  private static let longestDelay = Duration.seconds(1_000_000_000)
  private static let continuous = TimerService(ContinuousClock(), countsSleep: true)
  private static let suspending = TimerService(SuspendingClock(), countsSleep: false)

  private let cancellation: @Sendable () -> Void

  /// Calls `fire` once after `delay`, unless the timer is cancelled before that.
  ///
  /// A delay of zero or less passes at once. If a clock throws although the timer has not been cancelled, a
  /// `ContinuousClock` measures the delay instead.
  ///
  /// `fire` may block. It runs on a thread of ``DueWork``, which is available even while other work blocks Dispatch's
  /// shared threads. A `TimerClock` calls `fire` directly.
  ///
  /// - Returns: The timer. It fires even if the caller does not keep it.
  static func start(
    after delay: Duration,
    on clock: any Clock<Duration>,
    _ fire: @escaping @Sendable () -> Void
  ) -> ClockTimer {
    if let clock = clock as? any TimerClock { return ClockTimer(cancellation: clock.call(after: delay, fire)) }
    // Clocks differ in how they treat a time that passed long ago.
    let delay = min(max(delay, .zero), longestDelay)
    if clock is ContinuousClock { return ClockTimer(cancellation: continuous.start(after: delay, fire)) }
    if clock is SuspendingClock { return ClockTimer(cancellation: suspending.start(after: delay, fire)) }
    // A custom clock offers no way to wait except `sleep`. The task runs where timers fire, so it needs no thread of
    // the shared pool unless the clock's own `sleep` does.
    let task = Task(executorPreference: DueWork.shared) {
      do { try await clock.sleep(for: delay) } catch {
        if Task.isCancelled { return }
        do { try await ContinuousClock().sleep(for: delay) } catch { return }
      }
      // As with any other clock, a timer that is due can no longer be cancelled.
      fire()
    }
    return ClockTimer(cancellation: { task.cancel() })
  }

  /// Cancels the timer and releases its closure. Does nothing if it has fired.
  func cancel() { cancellation() }
}

/// A clock that calls back by itself, without a sleeping task.
///
/// A test moves such a clock by hand. All due work has been done when the call that moves the clock returns.
package protocol TimerClock: Clock where Duration == Swift.Duration {
  /// Calls `body` after `delay`.
  ///
  /// - Returns: A closure that cancels the call.
  func call(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}
