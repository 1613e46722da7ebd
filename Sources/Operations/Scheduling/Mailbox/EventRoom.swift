/// Enforces the ``EventCapacity`` of a mailbox.
///
/// It counts the bounded events that wait to run, and keeps suspended events in order until there is room for them.
struct EventRoom {
  enum Decision {
    case accept
    case suspend
    case refuse
    /// Accept the new event after withdrawing this one.
    case replace(EventTicket)
  }

  private let capacity: EventCapacity
  private var waitingCount = 0
  private var suspendedCount = 0
  /// The waiting events in order, for the policies that drop one of them. Tickets that left early stay until they are
  /// skipped or compacted.
  private var waiting = ArrayDeque<EventTicket>()
  /// The suspended events in order. Tickets that left early stay until they are skipped or compacted.
  private var suspended = ArrayDeque<EventTicket>()

  init(_ capacity: EventCapacity) { self.capacity = capacity }

  mutating func decide(about ticket: EventTicket) -> Decision {
    // A new event must not overtake a suspended one.
    if waitingCount < capacity.count, suspendedCount == 0 { return .accept }
    switch capacity.policy {
    case .fail: return .refuse
    case .suspend:
      guard ticket.maySuspend else { return .refuse }
      suspended.append(ticket)
      suspendedCount += 1
      return .suspend
    case .dropOldest: return waiting.popFirst { !$0.isGone }.map(Decision.replace) ?? .accept
    case .keepLatest: return waiting.popLast { !$0.isGone }.map(Decision.replace) ?? .accept
    }
  }

  // MARK: Waiting events

  mutating func addWaiting(_ ticket: EventTicket) {
    waitingCount += 1
    if capacity.policy == .dropOldest || capacity.policy == .keepLatest { waiting.append(ticket) }
  }

  /// Records that an event has begun or was withdrawn.
  mutating func removeWaiting() {
    waitingCount -= 1
    Self.compact(&waiting, liveCount: waitingCount)
  }

  // MARK: Suspended events

  /// Whether a suspended event could be accepted now.
  var canAcceptSuspended: Bool { suspendedCount > 0 && waitingCount < capacity.count }

  /// Removes the next suspended event if there is room for it.
  mutating func popSuspended() -> EventTicket? {
    guard canAcceptSuspended, let ticket = suspended.popFirst(where: { !$0.isGone }) else { return nil }
    suspendedCount -= 1
    return ticket
  }

  /// Records that a suspended event was withdrawn.
  mutating func removeSuspended() {
    suspendedCount -= 1
    Self.compact(&suspended, liveCount: suspendedCount)
  }

  mutating func removeAllSuspended() -> [EventTicket] {
    var removed: [EventTicket] = []
    while let ticket = suspended.popFirst(where: { !$0.isGone }) { removed.append(ticket) }
    suspendedCount = 0
    return removed
  }

  /// Removes the tickets that left early once they are the majority, which takes amortized constant time.
  private static func compact(_ tickets: inout ArrayDeque<EventTicket>, liveCount: Int) {
    if tickets.count >= 64, tickets.count > liveCount * 2 { tickets.removeAll(where: \.isGone) }
  }
}
