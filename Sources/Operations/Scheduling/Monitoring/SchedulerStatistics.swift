/// The work that a ``SerialScheduler`` has done and has yet to do, at one moment.
public struct SchedulerStatistics: Sendable {
  /// The number of events that have finished running.
  ///
  /// The event of a `run` is counted a moment after its caller resumes. Await ``SerialScheduler/drained()`` before
  /// you read an exact number.
  public let eventsRun: Int
  /// The number of accepted events that have not begun, excluding delayed events that are not due.
  public let eventsQueued: Int
  /// The number of events that were replaced by newer ones under the same key.
  public let eventsCoalesced: Int
  /// The number of events that will not run because of the capacity or a shutdown.
  ///
  /// Results and delayed events that reach a scheduler after its shutdown are included. Events for which `schedule`,
  /// `run`, `send` or `wait` reported the shutdown to the caller are not, and neither are cancelled and coalesced
  /// events.
  public let eventsDropped: Int
  /// The number of jobs of actors and tasks that have begun.
  public let jobsRun: Int
  /// The number of jobs that have not begun.
  public let jobsQueued: Int
  /// The longest time that an event waited for its turn, not including a delay, or nil without
  /// ``SerialScheduler/recordsTimings``.
  public let longestWait: Duration?
  /// The longest time that an event or job occupied the scheduler, or nil without ``SerialScheduler/recordsTimings``.
  public let longestRun: Duration?
}

extension SerialScheduler {
  /// The current statistics of the scheduler.
  public var statistics: SchedulerStatistics {
    // The counts are read before the mailbox, so that no event appears to have begun before it was accepted.
    let eventsRun = core.counts.eventsRun
    let eventsBegun = core.counts.eventsBegun
    let jobsBegun = core.counts.jobsBegun
    let times = core.instruments.withLock { ($0.longestWait, $0.longestRun) }
    return core.mailbox.withLock { mailbox in
      SchedulerStatistics(
        eventsRun: eventsRun,
        eventsQueued: mailbox.eventsAccepted - eventsBegun,
        eventsCoalesced: mailbox.eventsCoalesced,
        eventsDropped: mailbox.eventsDropped,
        jobsRun: jobsBegun,
        jobsQueued: mailbox.jobsAccepted - jobsBegun,
        longestWait: times.0,
        longestRun: times.1
      )
    }
  }

  /// Whether the scheduler records the longest wait and the longest run. The default is false.
  ///
  /// Recording reads the clock for every event. Setting the property to false discards the recorded times.
  public var recordsTimings: Bool {
    get { core.instruments.withLock { $0.recordsTimings } }
    set { updateInstruments { $0.recordsTimings = newValue } }
  }
}
