import Foundation

/// A one-shot timer on any clock.
struct ClockTimer: Sendable {
  /// About 30 years: longer than any program runs, and short enough for every clock to add to its time.
  private static let longestDelay = Duration.seconds(1_000_000_000)
  private static let continuous = TimerService(ContinuousClock(), countsSleep: true)
  private static let suspending = TimerService(SuspendingClock(), countsSleep: false)

  private let cancellation: @Sendable () -> Void

  /// Calls `fire` after `delay`, once, unless the timer is cancelled before.
  ///
  /// A delay of zero or less passes at once. If a clock throws although the timer has not been cancelled, a
  /// `ContinuousClock` measures the delay instead.
  ///
  /// `fire` may block, because it runs on a thread of ``DueWork``, whatever the rest of the program does with
  /// Dispatch's threads. A `TimerClock` calls it directly.
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
/// A test moves such a clock by hand. When the call that moves it returns, all due work has been done.
package protocol TimerClock: Clock where Duration == Swift.Duration {
  /// Calls `body` after `delay`.
  ///
  /// - Returns: A closure that cancels the call.
  func call(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}
