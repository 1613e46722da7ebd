/// The tasks that wait until a group has fewer than a number of unfinished members. A finished member makes room for
/// the tasks of at most one number, so finding them takes constant time.
struct RoomWaiters {
  /// Resumed with true if there is room.
  typealias Waiter = CheckedContinuation<Bool, Never>

  enum Purpose {
    /// All tasks resume when there is room.
    case watching
    /// The tasks add a member each. As many as there is room for resume, in the order of their tickets.
    case adding
  }

  struct Tasks {
    var watching: [Int: Waiter] = [:]
    var adding: [Int: Waiter] = [:]
    /// The tickets of adding tasks, and of some that have left.
    var order = ArrayDeque<Int>()

    var isEmpty: Bool { watching.isEmpty && adding.isEmpty }
  }

  /// By number. Nil if the group has finished, after which no task waits.
  private var tasks: [Int: Tasks]? = [:]
  /// The number of members that resumed tasks are about to add.
  private var reserved = 0
  private var lastTicket = 0

  var isEmpty: Bool { tasks?.isEmpty ?? true }
  var isOver: Bool { tasks == nil }

  mutating func makeTicket() -> Int {
    lastTicket += 1
    return lastTicket
  }

  /// Returns whether the task need not wait, because there is room and, for an adding task, none waits before it. Reserves
  /// the room of an adding task.
  mutating func hasRoom(below count: Int, of members: Int, for purpose: Purpose) -> Bool {
    switch purpose {
    case .watching: return members < count
    case .adding:
      guard members + reserved < count, tasks?[count]?.adding.isEmpty ?? true else { return false }
      reserved += 1
      return true
    }
  }

  mutating func endReservation() { reserved -= 1 }

  mutating func add(_ waiter: Waiter, ticket: Int, below count: Int, for purpose: Purpose) {
    switch purpose {
    case .watching: tasks?[count, default: Tasks()].watching[ticket] = waiter
    case .adding:
      tasks?[count, default: Tasks()].adding[ticket] = waiter
      tasks?[count]?.order.append(ticket)
    }
  }

  mutating func remove(ticket: Int, below count: Int) -> Waiter? {
    let waiter =
      tasks?[count]?.watching.removeValue(forKey: ticket) ?? tasks?[count]?.adding.removeValue(forKey: ticket)
    removeIfEmpty(count)
    return waiter
  }

  private mutating func removeIfEmpty(_ count: Int) { if tasks?[count]?.isEmpty == true { tasks?[count] = nil } }

  /// Returns the tasks for which there is room. Takes O(k) for k different numbers of adding tasks.
  mutating func take(downTo members: Int, from previous: Int) -> [Waiter] {
    // Checked first, because this is called for every finished member.
    if isEmpty || members >= previous { return [] }
    var taken: [Waiter] = []
    for count in members + 1...previous {
      guard let watching = tasks?[count]?.watching, !watching.isEmpty else { continue }
      taken += watching.values
      tasks?[count]?.watching = [:]
      removeIfEmpty(count)
    }
    for count in tasks?.keys.sorted() ?? [] {
      while members + reserved < count, let ticket = tasks?[count]?.order.popFirst() {
        guard let waiter = remove(ticket: ticket, below: count) else { continue }
        reserved += 1
        taken.append(waiter)
      }
    }
    return taken
  }

  mutating func end() -> [Waiter] {
    tasks.take()?.values.flatMap { [$0.watching, $0.adding].flatMap(\.values) } ?? []
  }
}

extension GroupEngine {
  /// Waits until there are fewer than `count` members, and returns whether that is so. If not, the group has finished or
  /// the task has been cancelled. An adding task must add a member then.
  func waitForRoom(below count: Int, in group: GroupOperation, for purpose: RoomWaiters.Purpose) async -> Bool {
    let ticket = state.withLock { state in
      let hasRoom = state.roomWaiters.hasRoom(below: count, of: state.members.count, for: purpose)
      return hasRoom ? nil : state.roomWaiters.makeTicket()
    }
    guard let ticket else { return true }
    // Registers once, for all waits. A group that times out finishes with unfinished members, and may never have room.
    if ticket == 1 { group.whenFinished { [weak self] in self?.endRoomWaits() } }
    if group.isFinished { return false }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        let hasRoom = state.withLock { state -> Bool? in
          if state.roomWaiters.isOver { return false }
          if state.roomWaiters.hasRoom(below: count, of: state.members.count, for: purpose) { return true }
          state.roomWaiters.add(waiter, ticket: ticket, below: count, for: purpose)
          return nil
        }
        if let hasRoom { waiter.resume(returning: hasRoom) }
        // The handler may have run before the task was added.
        if Task.isCancelled { endRoomWait(ticket, below: count) }
      }
    } onCancel: {
      endRoomWait(ticket, below: count)
    }
  }

  private func endRoomWait(_ ticket: Int, below count: Int) {
    state.withLock { $0.roomWaiters.remove(ticket: ticket, below: count) }?.resume(returning: false)
  }

  private func endRoomWaits() {
    for waiter in state.withLock({ $0.roomWaiters.end() }) { waiter.resume(returning: false) }
  }
}
