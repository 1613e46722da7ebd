/// The bounded part of a mailbox: who waits in it, and who waits to come in.
struct EventRoom {
  enum Decision {
    case enter
    case wait
    case refuse
    case replace(EventTicket)
  }

  private let capacity: EventCapacity
  private var count = 0
  /// In the order they came. Some may have left: they are skipped when they come up.
  private var line = Line<EventTicket>()
  private var linesGone = 0
  private var door = Line<EventTicket>()
  private var doorsGone = 0
  private var waiting = 0

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
    case .dropOldest:
      while let oldest = line.popFirst() { if oldest.isWaiting { return .replace(oldest) } }
      return .enter
    case .keepLatest:
      while let newest = line.popLast() { if newest.isWaiting { return .replace(newest) } }
      return .enter
    }
  }

  mutating func enter(_ ticket: EventTicket) {
    count += 1
    // Only these two have to find somebody in it.
    if capacity.policy == .dropOldest || capacity.policy == .keepLatest { line.append(ticket) }
  }

  mutating func leave() {
    count -= 1
    linesGone += 1
    guard linesGone >= 64, linesGone > count else { return }
    linesGone = 0
    line.removeAll(where: \.isGone)
  }

  var hasRoomForWaiting: Bool { waiting > 0 && count < capacity.count }

  mutating func next() -> EventTicket? {
    guard hasRoomForWaiting else { return nil }
    while let ticket = door.popFirst() {
      guard case .atDoor = ticket.place else { continue }
      waiting -= 1
      return ticket
    }
    return nil
  }

  /// Its place in the line is skipped when it comes up.
  mutating func leaveDoor() {
    waiting -= 1
    doorsGone += 1
    guard doorsGone >= 64, doorsGone > waiting else { return }
    doorsGone = 0
    door.removeAll(where: \.isGone)
  }

  mutating func removeAllWaiting() -> [EventTicket] {
    var removed: [EventTicket] = []
    while let ticket = door.popFirst() { if case .atDoor = ticket.place { removed.append(ticket) } }
    waiting = 0
    return removed
  }
}
