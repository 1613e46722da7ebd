import Foundation

/// The tasks that wait until a group has fewer than a number of unfinished members.
struct RoomWaiters {
  /// The tasks that only watch, by number and ticket. All resume when there is room.
  private var watching: [Int: [Int: Waiter]] = [:]
  /// The tasks that add a member each. As many as there is room for resume, in the order of their tickets.
  private var adding: [Int: [Int: Waiter]] = [:]
  /// By number, the tickets of adding tasks, and of some that have left.
  private var order: [Int: ArrayDeque<Int>] = [:]
  /// The number of members that resumed tasks are about to add.
  private var reserved = 0
  private var lastTicket = 0

  var isEmpty: Bool { watching.isEmpty && adding.isEmpty }

  /// Returns whether there is room and, for an adding task, none waits before it. Reserves the room of an adding task.
  mutating func hasRoom(below count: Int, of members: Int, isAdding: Bool) -> Bool {
    if !isAdding { return members < count }
    guard members + reserved < count, adding[count] == nil else { return false }
    reserved += 1
    return true
  }

  mutating func endReservation() { reserved -= 1 }

  /// - Returns: The ticket of the task, from 1 up.
  mutating func add(_ waiter: @escaping Waiter, below count: Int, isAdding: Bool) -> Int {
    lastTicket += 1
    if isAdding {
      adding[count, default: [:]][lastTicket] = waiter
      order[count, default: ArrayDeque()].append(lastTicket)
    } else {
      watching[count, default: [:]][lastTicket] = waiter
    }
    return lastTicket
  }

  mutating func remove(ticket: Int, below count: Int) -> Waiter? {
    defer {
      if watching[count]?.isEmpty == true { watching[count] = nil }
      if adding[count]?.isEmpty == true {
        adding[count] = nil
        order[count] = nil
      }
    }
    return watching[count]?.removeValue(forKey: ticket) ?? adding[count]?.removeValue(forKey: ticket)
  }

  /// Returns the tasks for which there is room now. Tasks that wait below a larger number than `previous` had room before.
  mutating func take(downTo members: Int, from previous: Int) -> [Waiter] {
    if isEmpty || members >= previous { return [] }
    var taken: [Waiter] = []
    for count in members + 1...previous {
      if let waiters = watching.removeValue(forKey: count) { taken += waiters.values }
    }
    for count in members + reserved + 1...previous + reserved where adding[count] != nil {
      while members + reserved < count, let ticket = order[count]?.popFirst() {
        guard let waiter = remove(ticket: ticket, below: count) else { continue }
        reserved += 1
        taken.append(waiter)
      }
    }
    return taken
  }

  mutating func end() -> [Waiter] {
    // These tasks are about to add their members, which finish unexecuted.
    reserved += adding.values.reduce(0) { $0 + $1.count }
    let waiters = [watching, adding].flatMap { $0.values.flatMap(\.values) }
    watching = [:]
    adding = [:]
    order = [:]
    return waiters
  }
}

extension GroupEngine {
  /// Waits until there are fewer than `count` members, or the group has finished, or the task has been cancelled. Returns
  /// whether the room of an adding task is reserved. An adding task must add a member in any case.
  func waitForRoom(below count: Int, in group: GroupOperation, adding operation: Operation? = nil) async -> Bool {
    let isAdding = operation != nil
    if count < 1 {
      let remedy = isAdding ? "Add an operation below 1 or more." : "Wait for room below 1 or more."
      misuse("\(group.quotedName) cannot have fewer than \(count) unfinished members. \(remedy)")
    }
    if state.withLock({ $0.hasRoom(below: count, isAdding: isAdding) }) { return true }
    if group.isFinished { return false }
    var (wait, ticket) = (TaskWait?.none, Int?.none)
    defer { wait?.end() }
    await waitOrUnregister { resume in
      wait = TaskWait.begin(.room(self, below: count)) { error in
        (operation as? AsyncOperation)?.cancel(with: error)
        resume()
      }
      ticket = state.withLock { state in
        if state.hasRoom(below: count, isAdding: isAdding) { return nil }
        return state.roomWaiters.add(resume, below: count, isAdding: isAdding)
      }
      // Registers once, for all waits. A group that times out finishes with unfinished members, and may never have room.
      if ticket == 1 { group.whenFinished { [weak self] in self?.endRoomWaits() } }
      // The waits of a group that has finished may have been ended before this one was added.
      if ticket == nil || group.isFinished { resume() }
      return nil
    }
    // A task that was cancelled may have room, which must then be used.
    let waiter = state.withLock { state in ticket.flatMap { state.roomWaiters.remove(ticket: $0, below: count) } }
    return waiter == nil
  }

  private func endRoomWaits() { for waiter in state.withLock({ $0.roomWaiters.end() }) { waiter() } }
}
