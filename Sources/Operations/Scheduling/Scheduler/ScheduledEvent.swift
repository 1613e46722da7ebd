/// An event that was scheduled for a later time, and can be cancelled until it begins.
public final class ScheduledEvent: Sendable {
  /// Never changed. (A `weak let` takes Swift 6.3, SE-0481.)
  private struct Home: @unchecked Sendable {
    /// The main one, which is always there: what a weak reference to it takes would look like a leak at the end.
    let main: SerialScheduler?
    weak var other: SerialScheduler?
  }

  private let ticket: EventTicket
  private let home: Home

  init(_ ticket: EventTicket, _ scheduler: SerialScheduler) {
    self.ticket = ticket
    home = scheduler.isMain ? Home(main: scheduler) : Home(main: nil, other: scheduler)
  }

  /// Keeps the event from being run, unless it has begun. Called on the scheduler, it is in time or too late, nothing
  /// in between: an event that has not begun by then never will.
  ///
  /// The closure is released.
  public func cancel() { (home.main ?? home.other)?.cancel(ticket) }
}
