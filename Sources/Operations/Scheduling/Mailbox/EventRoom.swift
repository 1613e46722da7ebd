/// The bounded part of a mailbox: who waits in it, and who waits to come in.
struct EventRoom {
  enum Decision {
    case enter
    case wait
    case refuse
    case replace(EventTicket)
  }

  /// Tickets in the order they came. Those that have left from the middle are skipped when they come up.
  private struct Queue {
    private var tickets = Line<EventTicket>()
    private var goneCount = 0

    /// With those that have left.
    var count: Int { tickets.count }

    mutating func append(_ ticket: EventTicket) { tickets.append(ticket) }

    mutating func popFirst() -> EventTicket? {
      while let ticket = tickets.popFirst() { if !ticket.isGone { return ticket } }
      return nil
    }

    mutating func popLast() -> EventTicket? {
      while let ticket = tickets.popLast() { if !ticket.isGone { return ticket } }
      return nil
    }

    /// Somebody has left. When they are more than those who are left, they are tidied away.
    mutating func noteGone(besides left: Int) {
      goneCount += 1
      guard goneCount >= 64, goneCount > left else { return }
      goneCount = 0
      tickets.removeAll(where: \.isGone)
    }
  }

  private let capacity: EventCapacity
  private var count = 0
  private var line = Queue()
  private var waiting = 0
  private var door = Queue()

  init(_ capacity: EventCapacity) { self.capacity = capacity }

  /// With those that have left and are not yet tidied away.
  var doorLength: Int { door.count }

  mutating func decide(about ticket: EventTicket) -> Decision {
    // Nobody overtakes those who wait already.
    if count < capacity.count, waiting == 0 { return .enter }
    switch capacity.policy {
    case .fail: return .refuse
    case .suspend:
      guard ticket.maySuspend else { return .refuse }
      door.append(ticket)
      waiting += 1
      return .wait
    case .dropOldest: return line.popFirst().map(Decision.replace) ?? .enter
    case .keepLatest: return line.popLast().map(Decision.replace) ?? .enter
    }
  }

  mutating func enter(_ ticket: EventTicket) {
    count += 1
    // Only these two have to find somebody in it.
    if capacity.policy == .dropOldest || capacity.policy == .keepLatest { line.append(ticket) }
  }

  mutating func leave() {
    count -= 1
    line.noteGone(besides: count)
  }

  var hasRoomForWaiting: Bool { waiting > 0 && count < capacity.count }

  mutating func next() -> EventTicket? {
    guard hasRoomForWaiting, let ticket = door.popFirst() else { return nil }
    waiting -= 1
    return ticket
  }

  mutating func leaveDoor() {
    waiting -= 1
    door.noteGone(besides: waiting)
  }

  mutating func removeAllWaiting() -> [EventTicket] {
    var removed: [EventTicket] = []
    while let ticket = door.popFirst() { removed.append(ticket) }
    waiting = 0
    return removed
  }
}
