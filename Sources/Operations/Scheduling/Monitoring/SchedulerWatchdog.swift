/// A monitor that reports events that occupy a ``SerialScheduler`` for too long.
///
/// While an event runs, all later ones wait. On ``SerialScheduler/main``, the user interface also waits.
///
/// ```swift
/// SerialScheduler.main.watchdog = SchedulerWatchdog(limit: .milliseconds(100)) { report in log(report) }
/// ```
///
/// The watchdog reports an event once, on another thread, while the event is still running. It reads the clock twice
/// per event. It does not observe operations that were added to the scheduler's queue.
public struct SchedulerWatchdog: Sendable {
  /// An event that has occupied the scheduler for longer than the limit.
  public struct Report: Sendable, CustomStringConvertible {
    /// The name of the scheduler.
    public let scheduler: String
    /// The location at which the event was scheduled, or nil for a job of an actor or a task.
    public let origin: EventOrigin?
    /// The limit that the event exceeded.
    public let limit: Duration

    public var description: String {
      let event = origin.map { "An event scheduled at \($0)" } ?? "A job of an actor or a task"
      return "\(event) has held the scheduler “\(scheduler)” for more than \(limit.text)."
    }
  }

  /// The time that an event may take before it is reported.
  public let limit: Duration
  let report: @Sendable (Report) -> Void

  /// Creates a watchdog, which calls `report` on a background thread.
  ///
  /// - Precondition: `limit` is greater than zero.
  public init(
    limit: Duration,
    _ report: @escaping @Sendable (Report) -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) {
    if limit <= .zero {
      let problem = "A watchdog cannot have a limit of \(limit.text)."
      misuse(problem + " Use a limit greater than zero.", file: file, line: line)
    }
    self.limit = limit
    self.report = report
  }
}

extension SerialScheduler {
  /// The watchdog of the scheduler. The default is nil.
  public var watchdog: SchedulerWatchdog? {
    get { instruments.withLock { $0.watchdog } }
    set {
      let now = time.now
      // The former watchdog is released after the lock, because releasing what its closure captures can run any code.
      let (former, alarm) = updateInstruments { $0.replaceWatchdog(with: newValue, at: now) }
      withExtendedLifetime(former) { startWatchdogTimer(alarm) }
    }
  }

  func startWatchdogTimer(_ alarm: SchedulerInstruments.Alarm?) {
    guard let (timer, delay) = alarm else { return }
    timer.start(after: delay, on: time.clock) { [weak self] in self?.watchdogTimerDidFire(timer) }
  }

  private func watchdogTimerDidFire(_ timer: ClockTimer) {
    let now = time.now
    let firing = instruments.withLock { $0.timerDidFire(timer, at: now) }
    guard let (watchdog, overdue, next) = firing else { return }
    for origin in overdue {
      watchdog.report(SchedulerWatchdog.Report(scheduler: name, origin: origin, limit: watchdog.limit))
    }
    startWatchdogTimer(next)
  }
}
