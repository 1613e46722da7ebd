import Foundation

/// A one-shot timer on any clock. The owner stores the timer before starting it, because it can fire at once.
final class ClockTimer: Sendable {
  private enum State {
    case idle
    case started(cancel: @Sendable () -> Void)
    case cancelled
  }

  /// The longest delay, about 30 years. Every clock can add it to its current time.
  private static let longestDelay = Duration.seconds(1_000_000_000)
  private static let continuous = TimerService(ContinuousClock(), countsSleep: true)
  private static let suspending = TimerService(SuspendingClock(), countsSleep: false)

  private let state = Locked(State.idle)

  /// Calls `fire` once after `delay`, which may block, even if the timer is released. It runs on a thread of
  /// ``DueWork``, except that a `TimerClock` calls it directly.
  func start(
    after delay: Duration,
    on clock: any Clock<Duration>,
    isTimeout: Bool = false,
    _ fire: @escaping @Sendable () -> Void
  ) {
    if case .cancelled = state.withLock({ $0 }) { return }
    let cancel = Self.call(after: delay, on: clock, isTimeout, fire)
    let isCancelled = state.withLock { state in
      if case .cancelled = state { return true }
      state = .started(cancel: cancel)
      return false
    }
    if isCancelled { cancel() }
  }

  /// Cancels the timer and releases its closure. Does nothing if it has fired.
  func cancel() {
    let previous = state.withLock { state in
      defer { state = .cancelled }
      return state
    }
    if case .started(let cancel) = previous { cancel() }
  }

  private static func call(
    after delay: Duration,
    on clock: any Clock<Duration>,
    _ isTimeout: Bool,
    _ fire: @escaping @Sendable () -> Void
  ) -> @Sendable () -> Void {
    if let clock = clock as? any TimerClock { return clock.call(after: delay, isTimeout: isTimeout, fire) }
    // Clocks differ in how they treat a time that passed long ago.
    let delay = min(max(delay, .zero), longestDelay)
    if clock is ContinuousClock { return continuous.start(after: delay, fire) }
    if clock is SuspendingClock { return suspending.start(after: delay, fire) }
    // A custom clock offers no way to wait except `sleep`. The task runs where timers fire, so it needs no thread of
    // the shared pool unless the clock's own `sleep` does.
    let task = Task(executorPreference: DueWork.shared) {
      do { try await clock.sleep(for: delay) } catch {
        if Task.isCancelled { return }
        // The clock failed.
        do { try await ContinuousClock().sleep(for: delay) } catch { return }
      }
      // As with any other clock, a timer that is due can no longer be cancelled.
      fire()
    }
    return { task.cancel() }
  }
}

/// A clock that a test moves by hand. All due work has been done when the call that moves the clock returns.
package protocol TimerClock: Clock where Duration == Swift.Duration {
  /// Calls `body` after `delay`, unless the returned closure is called before that.
  func call(after delay: Duration, isTimeout: Bool, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}
