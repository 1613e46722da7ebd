import Foundation

/// A one-shot timer on any clock. The owner stores the timer before starting it, because it can fire at once.
final class ClockTimer: Sendable {
  private struct State {
    /// Nil if the timer has been cancelled.
    var cancel: (@Sendable () -> Void)? = {}
  }

  private static let continuous = TimerService(ContinuousClock())
  private static let suspending = TimerService(SuspendingClock())

  private let state = Locked(State())

  /// Calls `fire` once after `delay`, which may block, even if the timer is released. It runs on a thread of
  /// ``DueWork``, except that a `TimerClock` calls it directly.
  func start(
    after delay: Duration,
    on clock: any Clock<Duration>,
    isTimeout: Bool = false,
    _ fire: @escaping @Sendable () -> Void
  ) {
    if state.withLock({ $0.cancel == nil }) { return }
    let cancel = Self.call(after: delay, on: clock, isTimeout, fire)
    let isCancelled = state.withLock { state in
      if state.cancel != nil { state.cancel = cancel }
      return state.cancel == nil
    }
    if isCancelled { cancel() }
  }

  /// Cancels the timer and releases its closure. Does nothing if it has fired.
  func cancel() { state.withLock { $0.cancel.take() }?() }

  private static func call(
    after delay: Duration,
    on clock: any Clock<Duration>,
    _ isTimeout: Bool,
    _ fire: @escaping @Sendable () -> Void
  ) -> @Sendable () -> Void {
    // Clocks differ in how they treat a time that passed long ago. Every clock can add 30 years to its current time.
    let boundedDelay = min(max(delay, .zero), .seconds(1_000_000_000))
    // The usual clocks come first, because a cast to a protocol that fails takes long.
    if clock is ContinuousClock { return continuous.start(after: boundedDelay, fire) }
    if clock is SuspendingClock { return suspending.start(after: boundedDelay, fire) }
    if let clock = clock as? any TimerClock { return clock.call(after: delay, isTimeout: isTimeout, fire) }
    // A custom clock can only `sleep`. The task needs no thread of the shared pool, unless the clock's `sleep` does.
    let task = Task(executorPreference: DueWork.shared) {
      do { try await clock.sleep(for: boundedDelay) } catch {
        if Task.isCancelled { return }
        // The clock failed.
        do { try await ContinuousClock().sleep(for: boundedDelay) } catch { return }
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
