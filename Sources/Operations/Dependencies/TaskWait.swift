import Foundation

/// A wait of a task that works for an operation.
struct TaskWait {
  private static let stepsAtMost = 256

  private let awaited: Operation
  /// The operations for which the task works, innermost first.
  private let around: [AsyncOperation]
  private let keyClaimants: [KeyClaimant]

  init(for awaited: Operation) {
    self.awaited = awaited
    let works = currentWork?.awaiting ?? []
    around = works.compactMap { $0.work as? AsyncOperation }
    keyClaimants = works.compactMap(\.keyClaimant)
  }

  func begin() { around.first?.beginAwaiting(awaited) }

  func end() { around.first?.endAwaiting(awaited) }

  /// Throws if the operation can end only after the work of the task, as far as a walk of limited length shows.
  func refuseCycle() throws {
    if around.isEmpty, keyClaimants.isEmpty { return }
    var snapshot = WaitSnapshot()
    var node = snapshot.index(of: awaited)
    while node < min(snapshot.nodes.count, Self.stepsAtMost) {
      _ = snapshot.read(node, limit: Self.stepsAtMost)
      defer { node += 1 }
      guard let own = snapshot.nodes[node].operation as? AsyncOperation else { continue }
      if around.contains(where: { $0 === own }) { throw cycle(snapshot, through: node) }
      let (wait, holdsSlot, turn) = own.core.withLock { ($0.lifecycle.phase.wait, $0.holdsSlot, $0.turn) }
      guard let wait, !own.isCancelled else { continue }
      // A delay needs no slot after its pause.
      if !holdsSlot, wait != .delay { try own.refuseSlotCycle(among: around) }
      // What is in a group that is free may still become a part of the work.
      guard let turn, !own.around.contains(where: \.isFree) else { continue }
      let outer = KeyClaimant.around(own)
      for holders in KeyRegistry.withTable({ $0.holders(before: turn, inside: outer, among: keyClaimants) }) {
        if keyClaimants.contains(where: { $0 === holders.first }) { throw cycle(snapshot, through: node) }
        // Of several holders, another one may leave first.
        if holders.count == 1, let holder = holders[0].operation {
          snapshot.addWait(node, for: snapshot.index(of: holder), .user)
        }
      }
    }
  }

  private func cycle(_ snapshot: WaitSnapshot, through last: Int) -> OperationError {
    var path = [last]
    while let first = path.first, first > 0,
      let waiting = snapshot.nodes.firstIndex(where: { $0.waits.contains { $0.node == first } })
    {
      path.insert(waiting, at: 0)
    }
    let name = around.first?.displayName ?? keyClaimants.first?.name ?? ""
    let names = path.compactMap { snapshot.nodes[$0].operation?.displayName }.filter { $0 != name }
    let cycle = ([name] + names + [name]).joined(separator: " → ")
    let remedy = "Wait for \(awaited.quotedName) in other work."
    return OperationError(.waitCycle, "“\(name)” would wait for its own end: \(cycle). \(remedy)")
  }
}

extension AsyncOperation {
  /// Throws if the work around the current task occupies all slots of the operation's queue or group, now or later.
  func refuseSlotCycle(among work: [AsyncOperation], of new: OperationQueue? = nil, group: GroupEngine? = nil) throws {
    if work.isEmpty { return }
    let (queue, engine) = core.withLock { (new ?? $0.queue, group ?? $0.engine) }
    let limit = queue?.maxConcurrentOperationCount ?? engine?.state.withLock { $0.schedule.limit } ?? 0
    let users = work.filter {
      $0 !== self && $0.core.withLock { $0.holdsSlot && (queue == nil ? $0.engine === engine : $0.queue === queue) }
    }
    if limit < 1 || users.count < limit { return }
    let place = queue == nil ? engine?.owner?.quotedName ?? "its group" : "its queue"
    let remedy = "Request one slot, or raise maxConcurrentOperationCount."
    throw slotCycle(place, "the work around it occupies all of them, as \(users.quotedNames). \(remedy)")
  }

  func slotCycle(_ place: String, _ reason: String) -> OperationError {
    OperationError(.waitCycle, "\(quotedName) would wait forever for a slot of \(place): \(reason)")
  }
}
