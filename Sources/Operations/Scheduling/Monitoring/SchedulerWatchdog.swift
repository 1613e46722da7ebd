/// Reports events that hold a ``SerialScheduler`` for long: everything behind them waits, on `.main` the screen.
///
/// ```swift
/// SerialScheduler.main.watchdog = SchedulerWatchdog(limit: .milliseconds(100)) { report in log(report) }
/// ```
///
/// The report comes while the event is still at it, on another thread, once an event. Watching costs two readings of
/// the clock an event. Operations that were added to the scheduler's queue are not watched.
public struct SchedulerWatchdog: Sendable {
  /// An event that has held the scheduler longer than the limit.
  public struct Report: Sendable, CustomStringConvertible {
    /// The scheduler's name.
    public let scheduler: String
    /// Where it was scheduled; nil for a job of an actor or a task.
    public let origin: EventOrigin?
    /// The one that was exceeded.
    public let limit: Duration

    public var description: String {
      let event = origin.map { "An event scheduled at \($0)" } ?? "A job of an actor or a task"
      return "\(event) has held the scheduler “\(scheduler)” for more than \(limit)."
    }
  }

  /// How long an event may take before it is reported.
  public let limit: Duration
  let report: @Sendable (Report) -> Void

  /// - Precondition: `limit` is more than nothing.
  public init(limit: Duration, _ report: @escaping @Sendable (Report) -> Void) {
    if limit <= .zero { misuse("A watchdog cannot report events after \(limit): allow them some time.") }
    self.limit = limit
    self.report = report
  }
}

extension SerialScheduler {
  /// Who is told of events that hold the scheduler for long.
  public var watchdog: SchedulerWatchdog? {
    get { core.instruments.withLock { $0.watchdog } }
    set {
      // The one before goes when the lock has been released: its closure is not ours.
      _ = change { instruments in
        defer { instruments.watchdog = newValue }
        return instruments.watchdog
      }
    }
  }

  func startWatching(_ action: SchedulerInstruments.TimerAction) {
    guard case .start(let delay, let generation) = action else { return }
    _ = ClockTimer.start(after: delay, on: core.time.clock) { [weak self] in self?.lookAtRunning(generation) }
  }

  private func lookAtRunning(_ generation: Int) {
    let now = core.time.now
    let (overdue, timer, watchdog) = core.instruments.withLock { instruments in
      let (overdue, timer) = instruments.look(at: now, generation: generation)
      return (overdue, timer, instruments.watchdog)
    }
    if let watchdog {
      for origin in overdue {
        watchdog.report(SchedulerWatchdog.Report(scheduler: name, origin: origin, limit: watchdog.limit))
      }
    }
    startWatching(timer)
  }
}
