/// The events and jobs that a ``SerialScheduler`` has run and has yet to run, at one moment.
public struct SchedulerStatistics: Sendable {
  /// The number of events that have finished running.
  ///
  /// The event of a `run` is counted a moment after the caller of `run` resumes. Await ``SerialScheduler/drained()``
  /// before you read an exact number.
  public let eventsRun: Int
  /// The number of accepted events that have not begun, excluding delayed events that are not due.
  public let eventsQueued: Int
  /// The number of events that were replaced by newer ones with the same key.
  public let eventsCoalesced: Int
  /// The number of events that will not run because of the capacity or a shutdown.
  ///
  /// The number includes results and delayed events that reach the scheduler after its shutdown. It excludes cancelled
  /// events, coalesced events, and events that `schedule`, `run`, `send` or `wait` refused because of the shutdown.
  public let eventsDropped: Int
  /// The number of jobs of actors and tasks that have begun.
  public let jobsRun: Int
  /// The number of jobs that have not begun.
  public let jobsQueued: Int
  /// The longest time that an event waited for its turn, apart from events that were scheduled with a delay. Nil without
  /// ``SerialScheduler/recordsTimings``.
  public let longestWait: Duration?
  /// The longest time that an event or job occupied the scheduler. Nil without ``SerialScheduler/recordsTimings``.
  public let longestRun: Duration?
}

extension SerialScheduler {
  /// The current statistics of the scheduler.
  public var statistics: SchedulerStatistics {
    // The counts are read before the mailbox, so that no event appears to have begun before it was accepted.
    let (eventsRun, eventsBegun, jobsBegun) = (eventsRun.count, eventsBegun.count, jobsBegun.count)
    let longest = instruments.withLock { $0.longest }
    return mailbox.withLock { mailbox in
      SchedulerStatistics(
        eventsRun: eventsRun,
        eventsQueued: mailbox.eventsAccepted - eventsBegun,
        eventsCoalesced: mailbox.eventsCoalesced,
        eventsDropped: mailbox.eventsDropped,
        jobsRun: jobsBegun,
        jobsQueued: mailbox.jobsAccepted - jobsBegun,
        longestWait: longest?.wait,
        longestRun: longest?.run
      )
    }
  }

  /// The number of events and jobs that have begun. It never decreases.
  package var begunSoFar: Int { eventsBegun.count + jobsBegun.count }

  /// Whether the scheduler records the longest wait and the longest run. The default is false.
  ///
  /// Recording reads the clock for every event. Setting the property to false discards the recorded times.
  public var recordsTimings: Bool {
    get { instruments.withLock { $0.recordsTimings } }
    set { updateInstruments { $0.recordsTimings = newValue } }
  }
}
