/// Waiting for room in a group.
extension GroupEngine {
  func waitForRoom(below count: Int, in group: GroupOperation) async {
    guard let ticket = state.withLock({ $0.hasRoom(below: count) ? nil : $0.roomWaiters.makeTicket() }) else { return }
    // Once for all waits. A group that times out finishes while members are left, and then there may never be room.
    if ticket == 1 { group.whenSettled { [weak self] in self?.endRoomWaits() } }
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
