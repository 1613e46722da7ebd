/// An operation that finishes after a delay.
///
/// ```swift
/// request ==> DelayOperation(.seconds(1)) ==> nextRequest
/// ```
///
/// The delay starts with execution and blocks no thread. The operation's ``AsyncOperation/clock`` measures it. In a group,
/// the delay uses no slot, unless the operation holds keys. Cancelling the operation finishes it at once.
public final class DelayOperation: AsyncOperation, @unchecked Sendable {
  private let duration: Duration
  private let timer = ClockTimer()

  /// Creates an operation that executes for `duration`.
  ///
  /// - Parameter duration: The delay. If it is not positive, the operation finishes at once.
  public init(_ duration: Duration) {
    self.duration = duration
    super.init()
  }

  public override func execute() {
    if duration <= .zero { return finish() }
    if core.withLock({ $0.engine != nil && $0.keys == nil }) {
      pause(for: duration, before: "its end", needsSlot: false) { self.finish() }
    } else {
      timer.start(after: duration, on: clock) { self.finish() }
    }
  }

  public override func didCancel() { finish() }

  override var beginsElsewhere: Bool { duration > .zero }

  override func prepareToFinish() { timer.cancel() }
}
