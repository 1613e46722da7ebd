import Foundation

/// A wait of a task for an operation, or for keys.
struct TaskWait {
  private static let stepsAtMost = 256

  private let awaited: AnyObject
  private let works: [(work: any EnclosingWork, keyClaimant: KeyClaimant?)]

  init(for awaited: AnyObject) { (self.awaited, works) = (awaited, currentWork?.awaiting ?? []) }

  /// The innermost operation, and the tasks inside it that hold keys.
  private var waiting: [any EnclosingWork] {
    guard let last = works.firstIndex(where: { $0.work is AsyncOperation }) ?? works.indices.last else { return [] }
    return works[...last].map(\.work)
  }

  func begin() { for work in waiting { work.beginAwaiting(awaited) } }

  func end() { for work in waiting { work.endAwaiting(awaited) } }

  /// Throws if the wait can end only after the work of the task, as far as a walk of limited length shows.
  func refuseCycle() throws {
    if works.isEmpty { return }
    let (around, keyClaimants) = (works.compactMap { $0.work as? AsyncOperation }, works.compactMap(\.keyClaimant))
    var (snapshot, tasks, node) = (WaitSnapshot(), [Int: TaskKeys](), 0)
    func follow(_ waiter: KeyClaimant, of work: any EnclosingWork) throws {
      let outer = KeyClaimant.around(work)
      for holders in KeyRegistry.withTable({ $0.holders(before: waiter, inside: outer, among: keyClaimants) }) {
        if keyClaimants.contains(where: { $0 === holders.first }) { throw cycle(snapshot, tasks, through: node) }
        // Of several holders, another one may leave first.
        guard holders.count == 1 else { continue }
        let holder = holders[0].operation.map { snapshot.index(of: $0) } ?? snapshot.addResource()
        tasks[holder] = holders[0] as? TaskKeys
        snapshot.addWait(node, for: holder, .user)
      }
    }
    if let keys = awaited as? TaskKeys {
      _ = snapshot.addResource()
      try follow(keys, of: keys)
    }
    if let operation = awaited as? Operation { _ = snapshot.index(of: operation) }
    while node < min(snapshot.nodes.count, Self.stepsAtMost) {
      _ = snapshot.read(node, limit: Self.stepsAtMost)
      defer { node += 1 }
      for operation in tasks[node]?.withAwaited({ $0.compactMap { $0 as? Operation } }) ?? [] {
        snapshot.addWait(node, for: snapshot.index(of: operation), .task)
      }
      guard let own = snapshot.nodes[node].operation as? AsyncOperation else { continue }
      if around.contains(where: { $0 === own }) { throw cycle(snapshot, tasks, through: node) }
      let (wait, holdsSlot, turn) = own.core.withLock { ($0.lifecycle.phase.wait, $0.holdsSlot, $0.turn) }
      if own.isCancelled { continue }
      for keys in own.awaitedKeys { try follow(keys, of: keys) }
      guard let wait else { continue }
      // A delay needs no slot after its pause.
      if !holdsSlot, wait != .delay { try own.refuseSlotCycle(among: around) }
      // What is in a group that is free may still become a part of the work.
      if let turn, !own.around.contains(where: \.isFree) { try follow(turn, of: own) }
    }
  }

  private func cycle(_ snapshot: WaitSnapshot, _ tasks: [Int: TaskKeys], through last: Int) -> OperationError {
    var path = [last]
    while let first = path.first, first > 0,
      let waiting = snapshot.nodes.firstIndex(where: { $0.waits.contains { $0.node == first } })
    {
      path.insert(waiting, at: 0)
    }
    let operation = waiting.last as? AsyncOperation
    let name = operation?.displayName ?? works.lazy.compactMap { $0.keyClaimant?.name }.first ?? ""
    let names = path.compactMap { tasks[$0]?.name ?? snapshot.nodes[$0].operation?.displayName }.filter { $0 != name }
    let cycle = ([name] + names + [name]).joined(separator: " → ")
    let remedy = "\((awaited as? Operation).map { "Wait for \($0.quotedName)" } ?? "Request the keys") in other work."
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
