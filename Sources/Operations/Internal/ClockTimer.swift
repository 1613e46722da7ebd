import Foundation

/// Something that is to be done when a clock says so.
struct ClockTimer: Sendable {
  /// Longer than anybody waits, and short enough for every clock to add to its time: what is not meant to end does not
  /// overflow.
  private static let longestDelay = Duration.seconds(1_000_000_000)

  private let cancellation: @Sendable () -> Void

  /// Calls `fire` after `delay`, once, unless the timer is cancelled before.
  ///
  /// A delay of nothing, or less, is over at once; a clock that throws although nobody has cancelled the timer is not
  /// relied on any longer, and a `ContinuousClock` measures the delay instead.
  ///
  /// On a thread of Dispatch: what is done at a timeout may call anything, also what blocks, and the threads that tasks
  /// run on are few. A clock that is moved by hand calls it from there.
  ///
  /// - Returns: The timer, which need not be kept.
  static func start(
    after delay: Duration,
    on clock: any Clock<Duration>,
    _ fire: @escaping @Sendable () -> Void
  ) -> ClockTimer {
    if let clock = clock as? any TimerClock { return ClockTimer(cancellation: clock.call(after: delay, fire)) }
    // Nor do clocks agree about a time that has passed long ago.
    let delay = min(max(delay, .zero), longestDelay)
    let task = Task {
      do { try await clock.sleep(for: delay) } catch {
        // Whoever waits for this must not wait for ever because of the clock.
        if Task.isCancelled { return }
        do { try await ContinuousClock().sleep(for: delay) } catch { return }
      }
      // Once it is due, it is due: whoever cancels it now is too late, as with any other clock.
      DispatchQueue.global().async(execute: fire)
    }
    return ClockTimer(cancellation: { task.cancel() })
  }

  /// Too late, it does nothing.
  func cancel() { cancellation() }
}

/// A clock that calls back by itself, without a task that sleeps: one that a test moves by hand, where everything that
/// is due has been done when the call that moves it returns.
package protocol TimerClock: Clock where Duration == Swift.Duration {
  /// - Returns: What cancels the call.
  func call(after delay: Duration, _ body: @escaping @Sendable () -> Void) -> @Sendable () -> Void
}
