/// Executes for a given time, and does nothing.
///
/// ```swift
/// request ==> DelayOperation(.seconds(1)) ==> nextRequest
/// ```
///
/// It holds no thread, follows the operation's ``AsyncOperation/clock``, and ends at once when it is cancelled. A
/// duration that is not positive is over at once.
public final class DelayOperation: AsyncOperation, @unchecked Sendable {
  private let duration: Duration
  private let timer = Locked<ClockTimer?>(nil)

  /// - Parameter duration: From the beginning of execution. None, or less than none, is over at once.
  public init(_ duration: Duration) {
    self.duration = duration
    super.init()
  }

  public override func execute() {
    if duration <= .zero { return finish() }
    let timer = ClockTimer.start(after: duration, on: clock) { self.finish() }
    self.timer.withLock { $0 = timer }
    // It may have been ended meanwhile.
    if !isExecuting { timer.cancel() }
  }

  public override func didCancel() { finish() }

  override var finishesByItself: Bool { true }

  override func willFinish() { timer.withLock { $0 }?.cancel() }
}
