/// An event that was scheduled for a later time, and can be cancelled until it begins.
public final class ScheduledEvent: Sendable {
  /// Never changed. (A `weak let` takes Swift 6.3, SE-0481.)
  private struct WeakScheduler: @unchecked Sendable {
    weak var scheduler: SerialScheduler?
  }

  private let ticket: EventTicket
  private let home: WeakScheduler

  init(_ ticket: EventTicket, _ scheduler: SerialScheduler) {
    self.ticket = ticket
    home = WeakScheduler(scheduler: scheduler)
  }

  /// Keeps the event from being run, unless it has begun. Called on the scheduler, it is in time or too late, nothing
  /// in between: an event that has not begun by then never will.
  ///
  /// The closure is released.
  public func cancel() { home.scheduler?.cancel(ticket) }
}
