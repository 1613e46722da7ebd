import Foundation

/// A wait of a task that works for an operation.
struct TaskWait {
  private static let stepsAtMost = 256

  private let awaited: Operation
  /// The work of the task. Nil if there is none, or if the operation for which the task works has finished.
  private let work: (any EnclosingWork)?
  /// The operations for which the task works, innermost first.
  private let around: [AsyncOperation]

  init(for awaited: Operation) {
    self.awaited = awaited
    let work = currentWork
    around = work.map { [$0 as? AsyncOperation].compactMap(\.self) + $0.around } ?? []
    self.work = around.first?.isFinished == true ? nil : work
  }

  func begin() { around.first?.beginAwaiting(awaited) }

  func end() { around.first?.endAwaiting(awaited) }

  /// Throws if the operation, which has been or will be added to `queue`, can end only after the work of the task, as
  /// far as a walk of limited length shows.
  func refuseCycle(in queue: OperationQueue? = nil) throws {
    guard let work else { return }
    let keyClaimants = KeyClaimant.around(work) + [work.surroundings.keyClaimant].compactMap(\.self)
    var snapshot = WaitSnapshot()
    var node = snapshot.index(of: awaited)
    if let queue, let own = awaited as? AsyncOperation { try own.refuseSlotCycle(among: around, of: queue) }
    while node < min(snapshot.nodes.count, Self.stepsAtMost), snapshot.read(node, limit: Self.stepsAtMost) {
      defer { node += 1 }
      guard let operation = snapshot.nodes[node].operation else { continue }
      if around.contains(where: { $0 === operation }) { throw cycle(snapshot, through: node) }
      guard let own = operation as? AsyncOperation else { continue }
      switch own.core.withLock({ $0.lifecycle.isCancelled ? nil : $0.lifecycle.phase.wait }) {
      case .slot: try own.refuseSlotCycle(among: around)
      case .turn:
        for holders in own.keyHolders where !holders.isEmpty {
          // Of several holders, another one may leave first.
          if holders.allSatisfy({ holder in keyClaimants.contains { $0 === holder } }) {
            throw cycle(snapshot, through: node)
          }
          if holders.count == 1, let holder = holders[0].operation {
            snapshot.addWait(node, for: snapshot.index(of: holder), .user)
          }
        }
      default: break
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
    let name = around.first?.displayName ?? work?.surroundings.keyClaimant?.name ?? ""
    let names = path.compactMap { snapshot.nodes[$0].operation?.displayName }.filter { $0 != name }
    let cycle = ([name] + names + [name]).joined(separator: " → ")
    let remedy = "Wait for \(awaited.quotedName) in other work."
    return OperationError(.waitCycle, "“\(name)” would wait for its own end: \(cycle). \(remedy)")
  }
}

extension AsyncOperation {
  func cancelIfRefused(_ error: any Error) { if error is OperationError { cancel(with: error) } }

  /// For each key that the operation waits for, the holders that do not lend it.
  fileprivate var keyHolders: [[KeyClaimant]] {
    let (turn, lenders) = (core.withLock { $0.turn }, KeyClaimant.around(self))
    return (turn?.obstacles() ?? []).filter(\.obstacle.areHolders).map { _, _, holders in
      holders.filter { holder in !lenders.contains { $0 === holder } }
    }
  }

  /// Throws if the work around the current task occupies all slots of the operation's queue or group, now or later.
  func refuseSlotCycle(
    among around: [AsyncOperation],
    of newQueue: OperationQueue? = nil,
    or newEngine: GroupEngine? = nil
  ) throws {
    if around.isEmpty { return }
    let (queue, engine) = core.withLock { (newQueue ?? $0.queue, newEngine ?? $0.engine) }
    let limit = queue?.maxConcurrentOperationCount ?? engine?.state.withLock { $0.schedule.limit } ?? 0
    let users = around.filter {
      $0.core.withLock { $0.holdsSlot && (queue == nil ? $0.engine === engine : $0.queue === queue) }
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
