/// The number of events that may wait on a ``SerialScheduler``, and what happens to further events.
///
/// Only events from `schedule`, `run` and `send` are counted. Delivered results, delayed events that are due, bodies of
/// `wait`, and jobs of actors are always accepted.
///
/// ``SchedulerStatistics/eventsDropped`` counts dropped events. A `run` whose event is dropped throws
/// ``OperationError/Code/overflow``.
public struct EventCapacity: Sendable, Hashable {
  /// What happens to an event that is scheduled while the scheduler is full.
  public enum Policy: Sendable, Hashable, CaseIterable {
    /// ``SerialScheduler/send(_:file:line:)`` and `run` suspend until there is room, in order of arrival. `schedule`
    /// cannot suspend, so it returns false.
    case suspend
    /// The event that has waited longest is dropped in favor of the new one.
    case dropOldest
    /// The waiting event that was scheduled last is dropped in favor of the new one, so the oldest events and the
    /// latest one remain.
    case replaceLatest
    /// `schedule` returns false. `run` and `send` throw ``OperationError/Code/overflow``.
    case fail
  }

  /// The number of events that may wait. An event that is running does not count.
  public let count: Int
  /// What happens to an event that is scheduled while the scheduler is full.
  public let policy: Policy

  /// Creates a capacity.
  ///
  /// - Precondition: `count` is at least 1.
  public init(_ count: Int, whenFull policy: Policy) {
    if count < 1 {
      misuse("A scheduler with a capacity of \(count) could never accept an event. Use a capacity of at least 1.")
    }
    self.count = count
    self.policy = policy
  }
}

/// The waiting and suspended events of a mailbox. Tickets that are gone stay until they are skipped or compacted.
struct EventRoom {
  private let capacity: EventCapacity
  private var waitingCount = 0
  private var suspendedCount = 0
  /// The waiting events in order, for the policies that drop one of them.
  private var waiting = ArrayDeque<EventTicket>()
  private var suspended = ArrayDeque<EventTicket>()

  init(_ capacity: EventCapacity) { self.capacity = capacity }

  /// Decides what happens to a new event, and which event it replaces. Adds an event that suspends.
  mutating func decide(about ticket: EventTicket) -> (acceptance: Mailbox.Acceptance, replaced: EventTicket?) {
    // A new event must not overtake a suspended one.
    if waitingCount < capacity.count, suspendedCount == 0 { return (.accepted, nil) }
    switch capacity.policy {
    case .fail: return (.full, nil)
    case .suspend:
      guard case .suspending = ticket.capacity else { return (.full, nil) }
      suspended.append(ticket)
      suspendedCount += 1
      return (.suspended, nil)
    case .dropOldest: return (.accepted, waiting.popFirst { !$0.isGone })
    case .replaceLatest: return (.accepted, waiting.popLast { !$0.isGone })
    }
  }

  mutating func addWaiting(_ ticket: EventTicket) {
    waitingCount += 1
    if capacity.policy == .dropOldest || capacity.policy == .replaceLatest { waiting.append(ticket) }
  }

  mutating func removeWaiting() {
    waitingCount -= 1
    Self.compact(&waiting, liveCount: waitingCount)
  }

  var canAcceptSuspended: Bool { suspendedCount > 0 && waitingCount < capacity.count }

  mutating func popSuspended() -> EventTicket? {
    guard canAcceptSuspended, let ticket = suspended.popFirst(where: { !$0.isGone }) else { return nil }
    suspendedCount -= 1
    return ticket
  }

  mutating func removeSuspended() {
    suspendedCount -= 1
    Self.compact(&suspended, liveCount: suspendedCount)
  }

  mutating func removeAllSuspended() -> [EventTicket] {
    defer { (suspended, suspendedCount) = (ArrayDeque(), 0) }
    return suspended.all.filter { !$0.isGone }
  }

  /// Removes the tickets that are gone once they are the majority, in amortized constant time for each ticket.
  private static func compact(_ tickets: inout ArrayDeque<EventTicket>, liveCount: Int) {
    if tickets.count >= 64, tickets.count > liveCount * 2 { tickets.removeAll(where: \.isGone) }
  }
}
