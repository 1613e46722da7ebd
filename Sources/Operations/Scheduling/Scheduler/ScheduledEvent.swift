/// An event that was scheduled for a later time and can be cancelled until it begins.
public final class ScheduledEvent: Sendable {
  /// A reference to the scheduler. It never changes; `weak let` requires Swift 6.3 (SE-0481).
  private struct Home: @unchecked Sendable {
    /// The main scheduler is held strongly: it lives forever, and leak checkers would report a weak reference to it.
    let main: SerialScheduler?
    weak var other: SerialScheduler?
  }

  private let ticket: EventTicket
  private let home: Home

  init(_ ticket: EventTicket, _ scheduler: SerialScheduler) {
    self.ticket = ticket
    home = scheduler.isMain ? Home(main: scheduler) : Home(main: nil, other: scheduler)
  }

  /// Cancels the event if it has not begun, and releases its closure.
  ///
  /// After a call on the scheduler, an event that has not begun never runs.
  public func cancel() { (home.main ?? home.other)?.cancel(ticket) }
}
