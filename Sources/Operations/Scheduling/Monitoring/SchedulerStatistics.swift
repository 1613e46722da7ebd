/// What a ``SerialScheduler`` has done and has yet to do, at one moment.
public struct SchedulerStatistics: Sendable {
  /// Events that have been run to their end. The event of a `run` counts a moment after its caller goes on: wait with
  /// ``SerialScheduler/drained()`` before you look.
  public let eventsRun: Int
  /// Events that have been accepted and have not begun, not counting those for a time to come.
  public let eventsQueued: Int
  /// Events that a newer one under the same key has made superfluous.
  public let eventsCoalesced: Int
  /// Events that were accepted, or wanted to be, and will not be run: because of the capacity, because the scheduler
  /// was shut down, or had been when a result was to be delivered or an event scheduled for later. Not those that were
  /// cancelled, nor those that were coalesced.
  public let eventsDropped: Int
  /// Pieces of actors' methods and tasks that have been run, or are being run.
  public let jobsRun: Int
  /// Those that wait for their turn.
  public let jobsQueued: Int
  /// The longest that an event had to wait for its turn, without those that were to come later. Only if
  /// ``SerialScheduler/recordsTimings`` is set.
  public let longestWait: Duration?
  /// The longest that an event or a job held the scheduler. Only if ``SerialScheduler/recordsTimings`` is set.
  public let longestRun: Duration?
}

extension SerialScheduler {
  /// What the scheduler has done and has yet to do.
  public var statistics: SchedulerStatistics {
    // Those that have begun first: they have been accepted before.
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

  /// Whether the longest wait and the longest run are measured, which costs readings of the clock. Setting it to false
  /// forgets them.
  public var recordsTimings: Bool {
    get { core.instruments.withLock { $0.recordsTimings } }
    set { change { $0.recordsTimings = newValue } }
  }
}
