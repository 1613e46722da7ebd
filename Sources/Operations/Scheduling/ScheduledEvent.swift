/// An event that was scheduled for a later time, and can be cancelled until it begins.
public final class ScheduledEvent: Sendable {
  private let ticket: EventTicket
  private weak let scheduler: SerialScheduler?

  init(_ ticket: EventTicket, _ scheduler: SerialScheduler) {
    self.ticket = ticket
    self.scheduler = scheduler
  }

  /// Keeps the event from being run, unless it has begun. Called on the scheduler, it is in time or too late, nothing
  /// in between: an event that has not begun by then never will.
  ///
  /// The closure is released.
  public func cancel() { scheduler?.cancel(ticket) }
}
