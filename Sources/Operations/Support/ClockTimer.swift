import Foundation

/// A one-shot timer on any clock.
///
/// The owner stores the timer before starting it, so the timer can fire at any time after that.
final class ClockTimer: Sendable {
  private struct State {
    var isCancelled = false
    var cancellation: (@Sendable () -> Void)?
  }

  /// The longest delay, about 30 years. Every clock can add it to its current time.
  private static let longestDelay = Duration.seconds(1_000_000_000)
  private static let continuous = TimerService(ContinuousClock(), countsSleep: true)
  private static let suspending = TimerService(SuspendingClock(), countsSleep: false)

  private let state = Locked(State())

  /// Creates and starts a timer. It fires even if the caller does not keep it.
  @discardableResult
  static func start(
    after delay: Duration,
    on clock: any Clock<Duration>,
    _ fire: @escaping @Sendable () -> Void
  ) -> ClockTimer {
    let timer = ClockTimer()
    timer.start(after: delay, on: clock, fire)
    return timer
  }

  /// Calls `fire` once after `delay`, unless the timer is cancelled before that.
  ///
  /// A delay of zero or less passes at once. If a clock throws although the timer has not been cancelled, a
  /// `ContinuousClock` measures the delay instead.
  ///
  /// `fire` may block. It runs on a thread of ``DueWork``, which is available even while other work blocks Dispatch's
  /// shared threads. A `TimerClock` calls `fire` directly.
  func start(after delay: Duration, on clock: any Clock<Duration>, _ fire: @escaping @Sendable () -> Void) {
    if state.withLock({ $0.isCancelled }) { return }
    let cancellation = Self.call(after: delay, on: clock, fire)
    let isCancelled = state.withLock { state in
      if !state.isCancelled { state.cancellation = cancellation }
      return state.isCancelled
    }
    if isCancelled { cancellation() }
  }

  /// Cancels the timer and releases its closure. Does nothing if it has fired.
  func cancel() {
    let cancellation = state.withLock { state in
      state.isCancelled = true
      return state.cancellation.take()
    }
    cancellation?()
  }

  private static func call(
    after delay: Duration,
    on clock: any Clock<Duration>,
    _ fire: @escaping @Sendable () -> Void
  ) -> @Sendable () -> Void {
    if let clock = clock as? any TimerClock { return clock.call(after: delay, fire) }
    // Clocks differ in how they treat a time that passed long ago.
    let delay = min(max(delay, .zero), longestDelay)
    if clock is ContinuousClock { return continuous.start(after: delay, fire) }
    if clock is SuspendingClock { return suspending.start(after: delay, fire) }
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
    return { task.cancel() }
  }
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
