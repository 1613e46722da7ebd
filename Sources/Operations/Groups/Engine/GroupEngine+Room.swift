/// Waiting for room in a group.
extension GroupEngine {
  func waitForRoom(below count: Int, in group: GroupOperation) async {
    guard let ticket = state.withLock({ $0.hasRoom(below: count) ? nil : $0.roomWaiters.makeTicket() }) else { return }
    // Registers once, for all waits. A group that times out finishes with unfinished members, and may never have room.
    if ticket == 1 { group.whenFinished { [weak self] in self?.endRoomWaits() } }
    if group.isFinished { return }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let hasRoom = state.withLock { state in
          let hasRoom = state.hasRoom(below: count)
          if !hasRoom { state.roomWaiters.add(continuation, ticket: ticket, below: count) }
          return hasRoom
        }
        if hasRoom { continuation.resume() }
        // The handler may have run before the task was added.
        if Task.isCancelled { endRoomWait(ticket, below: count) }
      }
    } onCancel: {
      endRoomWait(ticket, below: count)
    }
  }

  private func endRoomWait(_ ticket: Int, below count: Int) {
    state.withLock { $0.roomWaiters.remove(ticket: ticket, below: count) }?.resume()
  }

  private func endRoomWaits() {
    for waiters in state.withLock({ $0.roomWaiters.end() }) { waiters.resume() }
  }
}

/// The tasks that wait until a group has fewer than a number of unfinished members.
///
/// The tasks are stored by that number. Each finished member makes room for the tasks of at most one number, so finding
/// them takes constant time.
struct RoomWaiters {
  /// Tasks to resume after the lock has been released.
  struct Batch {
    fileprivate var continuations: [Int: CheckedContinuation<Void, Never>] = [:]

    func resume() {
      // Called for every finished member. Checking for an empty dictionary is faster than iterating over it.
      if continuations.isEmpty { return }
      for continuation in continuations.values { continuation.resume() }
    }
  }

  private var batches: [Int: Batch] = [:]
  private var lastTicket = 0
  /// Whether the group has finished. No task waits after that.
  private(set) var isOver = false

  var isEmpty: Bool { batches.isEmpty }

  /// Returns the number of a new wait, from 1 up.
  mutating func makeTicket() -> Int {
    lastTicket += 1
    return lastTicket
  }

  /// Adds a task that waits until fewer than `count` members are unfinished.
  ///
  /// - Precondition: At least `count` members are unfinished.
  mutating func add(_ continuation: CheckedContinuation<Void, Never>, ticket: Int, below count: Int) {
    batches[count, default: Batch()].continuations[ticket] = continuation
  }

  /// Removes a task if it still waits.
  mutating func remove(ticket: Int, below count: Int) -> CheckedContinuation<Void, Never>? {
    let continuation = batches[count]?.continuations.removeValue(forKey: ticket)
    if batches[count]?.continuations.isEmpty == true { batches[count] = nil }
    return continuation
  }

  /// Removes the tasks that can resume because the number of unfinished members fell by one, to `count`.
  mutating func take(downTo count: Int) -> Batch {
    batches.isEmpty ? Batch() : batches.removeValue(forKey: count + 1) ?? Batch()
  }

  /// Removes all tasks because the group has finished.
  mutating func end() -> [Batch] {
    defer { (batches, isOver) = ([:], true) }
    return Array(batches.values)
  }
}
