import Foundation

extension WaitSnapshot {
  /// A wait that can give way.
  private enum Giver {
    case task(TaskWait)
    case keys(TaskKeys)
    case operation(AsyncOperation)
  }

  /// Whether an operation waits, or a member of it, for more than a slot.
  func isSuspect(_ operation: AsyncOperation) -> Bool {
    guard let node = end(of: operation), !nodes[node].stamp.phase.isOver else { return false }
    return nodes[node].waits.contains { other, kind in
      kind != .member || nodes[other].waits.contains { $0.kind != .slot && $0.kind != .groupStart }
    }
  }

  /// Lets one wait of each cycle give way, the one that began last. Returns whether there was a cycle.
  ///
  /// A set of nodes that waits for another such set may be able to end when one of the other set has given way. It is left
  /// to the next search.
  func giveWay() -> Bool {
    let order = order()
    let stuck = order.stuck
    if stuck.isEmpty { return false }
    var setOf: [Int: Int] = [:]
    for (index, set) in stuck.enumerated() { for item in set.items { setOf[item] = index } }
    let current = current(of: stuck.flatMap(\.items))
    var isResolved: [Bool] = []
    var refused: [ObjectIdentifier: (operation: AsyncOperation, error: OperationError)] = [:]
    for (index, set) in stuck.enumerated() {
      let isCurrent = set.items.allSatisfy(current.contains)
      let waited = Set(set.items.flatMap { nodes[$0].waits.compactMap { setOf[$0.node] } }).subtracting([index])
      if isOfDependencies(set, setOf) {
        let blocked = blocked(by: set, order.dependents, setOf)
        isResolved.append(!blocked.isEmpty)
        if !blocked.isEmpty, isCurrent { refuse(blocked, because: set.cycle, &refused) }
      } else if waited.contains(where: { isResolved[$0] }) {
        isResolved.append(true)
      } else {
        // What waits for a cycle of which none can give way, such as one of plain operations, goes on waiting.
        let mayGiveWay = !set.cycle.isEmpty
        isResolved.append(
          mayGiveWay && giveWay(set.items, order.dependents, isCurrent: isCurrent, setOf)
        )
      }
    }
    cancel(refused)
    return isResolved.contains(true)
  }

  // MARK: The last wait of a set

  private static let searchesAtMost = 16

  private func giveWay(_ items: [Int], _ dependents: [[Int]], isCurrent: Bool, _ setOf: [Int: Int]) -> Bool {
    if let first = items.compactMap({ claimant(of: $0) }).filter(mayPass).compactMap(\.ticket).min() {
      if isCurrent { KeyRegistry.change { $0.prefer(first, &$1) } }
      return true
    }
    let isInSet = { setOf[$0] == setOf[items[0]] }
    let givers = items.flatMap { node in
      self.givers(of: node, isInSet).map { (node: node, giver: $0.giver, rank: $0.rank) }
    }
    let latest = givers.sorted { $0.rank > $1.rank }
    let helping = latest.prefix(Self.searchesAtMost).first { letsOtherEnd($0.node, dependents, setOf) }
    guard let last = helping ?? latest.first else { return false }
    guard isCurrent else { return true }
    let reason = way(back: last.node, for: last.giver, isInSet)
    switch last.giver {
    case .task(let wait):
      wait.refuse(with: OperationError(.waitCycle, "\(name(last.node)) would wait forever: it \(reason)."))
    case .keys(let keys):
      keys.cancel(with: OperationError(.waitCycle, "\(keys.quotedName) would wait forever: it \(reason)."))
    case .operation(let operation):
      let message = "\(operation.quotedName) did not run because it would wait forever: it \(reason)."
      operation.refuse(with: OperationError(.waitCycle, message))
    }
    return true
  }

  /// Whether the end of one node lets another operation or task of its set end or start.
  private func letsOtherEnd(_ node: Int, _ dependents: [[Int]], _ setOf: [Int: Int]) -> Bool {
    // A cancelled member does not end before its group starts.
    if nodes[node].operation.flatMap(WaitPlace.init)?.group?.state == .pending { return false }
    var (ended, toDo) = (Set([node]), [node])
    while let item = toDo.popLast() {
      for other in dependents[item] where setOf[other] == setOf[node] && !ended.contains(other) {
        let over = nodes[other].waits.map(\.node).filter { ended.contains($0) || setOf[$0] == nil }
        var demand = nodes[other].demand
        let isMet = over.contains { demand?.end(of: $0) == true }
        guard isMet || over.count >= nodes[other].needed ?? nodes[other].waits.count else { continue }
        if !isResource(other) { return true }
        ended.insert(other)
        toDo.append(other)
      }
    }
    return false
  }

  /// Whether a claim passes those before it, which wait for a holder around it, or where no slot is free.
  private func mayPass(_ claimant: KeyClaimant) -> Bool {
    guard let ticket = claimant.ticket else { return false }
    let (others, isInHolder) = KeyRegistry.withTable { $0.claimants(before: ticket) }
    return !others.isEmpty
      && (isInHolder || others.allSatisfy { $0.operation.flatMap(WaitPlace.init)?.isFull == true })
  }

  private func claimant(of node: Int) -> KeyClaimant? {
    switch nodes[node].subject {
    case .operation(let operation, _): (operation as? AsyncOperation)?.core.withLock { $0.keys }
    case .task(let claimant): claimant
    case .slots, .key, .room, .oneOf: nil
    }
  }

  /// The waits of a node for nodes of its set, by their begin. Of waits that began together, that of a task gives way.
  private func givers(of node: Int, _ isInSet: (Int) -> Bool) -> [(
    giver: Giver, rank: (time: Int, isTask: Int, number: Int)
  )] {
    let waits = nodes[node].waits.filter { isInSet($0.node) }
    if waits.isEmpty { return [] }
    switch nodes[node].subject {
    case .task(let keys as TaskKeys) where keys.isWaiting:
      return [(.keys(keys), (keys.began?.milliseconds ?? 0, 1, keys.ticket?.number ?? 0))]
    case .operation(let operation as AsyncOperation, _) where waits.contains { $0.kind.isOfStart }:
      let (phase, isCancelled, since) = operation.core.withLock {
        ($0.lifecycle.phase, $0.lifecycle.isCancelled, $0.since)
      }
      guard phase.wait != nil, !isCancelled else { return [] }
      return [(.operation(operation), (since?.milliseconds ?? 0, 0, claimant(of: node)?.ticket?.number ?? node))]
    case .operation, .task:
      return waits.compactMap { wait in
        guard case .task(let wait) = wait.kind, wait.isRefusable else { return nil }
        return (.task(wait), (wait.began.milliseconds, 1, wait.number))
      }
    case .slots, .key, .room, .oneOf: return []
    }
  }

  /// Says what a node waits for, along the shortest way back to the node.
  private func way(back node: Int, for giver: Giver, _ isInSet: (Int) -> Bool) -> String {
    var cameFrom: [Int: Int] = [:]
    var toDo = [node]
    var done = 0
    search: while done < toDo.count {
      let item = toDo[done]
      done += 1
      for (next, kind) in nodes[item].waits where isInSet(next) && cameFrom[next] == nil {
        if item == node, case .task(let wait) = giver, kind != .task(wait) { continue }
        cameFrom[next] = item
        if next == node { break search }
        toDo.append(next)
      }
    }
    var path: [Int] = []
    var item = cameFrom[node] ?? node
    while item != node {
      path.insert(item, at: 0)
      item = cameFrom[item] ?? node
    }
    return sentence(of: [node] + path)
  }

  // MARK: Cycles of dependencies

  private func isOfDependencies(_ set: (items: [Int], cycle: [Int]), _ setOf: [Int: Int]) -> Bool {
    !set.cycle.isEmpty
      && set.items.allSatisfy { item in
        nodes[item].waits.allSatisfy { setOf[$0.node] != setOf[item] || $0.kind.isOfDependencies }
      }
  }

  /// Returns the members on a cycle of dependencies, and those that depend on them, or else the operation on it that was
  /// added to a queue last.
  private func blocked(by set: (items: [Int], cycle: [Int]), _ dependents: [[Int]], _ setOf: [Int: Int])
    -> [AsyncOperation]
  {
    var (all, found, done) = (set.items, Set(set.items), 0)
    while done < all.count {
      // Cancelling a member does not cancel its group, so that only dependencies lead to the cycle.
      let waiters = dependents[all[done]].filter { waiter in
        setOf[waiter] != nil
          && nodes[waiter].waits.contains { $0.node == all[done] && ($0.kind == .dependency || $0.kind == .ownStart) }
      }
      all += waiters.filter { found.insert($0).inserted }
      done += 1
    }
    let operations = all.filter { !nodes[$0].stamp.isCancelled }.compactMap { nodes[$0].operation as? AsyncOperation }
    // A member cannot finish before its group starts.
    let starts = Set(set.items.filter(isStart).compactMap { nodes[$0].operation }.map { ObjectIdentifier($0) })
    let members = operations.filter { operation in
      let (isMember, outer) = operation.core.withLock { ($0.engine != nil, $0.outer) }
      return isMember && outer.map { !starts.contains(ObjectIdentifier($0)) } ?? true
    }
    if !members.isEmpty { return members }
    let added = operations.map { operation in
      (operation: operation, place: operation.core.withLock { ($0.queue != nil, $0.since?.milliseconds ?? 0) })
    }
    return added.filter(\.place.0).max { $0.place.1 < $1.place.1 }.map { [$0.operation] } ?? []
  }

  private func refuse(
    _ blocked: [AsyncOperation],
    because cycle: [Int],
    _ refused: inout [ObjectIdentifier: (operation: AsyncOperation, error: OperationError)]
  ) {
    let operations = cycle.compactMap { nodes[$0].operation }.withoutRepeats { ObjectIdentifier($0) }
    let names = operations.prefix(16).map(\.displayName)
    let others = operations.count - names.count
    let path = (names + (others > 0 ? ["… \(others) more …"] : []) + names.prefix(1)).joined(separator: " → ")
    for operation in blocked where refused[ObjectIdentifier(operation)] == nil {
      let place = WaitPlace(of: operation)?.name.map { " in “\($0)”" } ?? ""
      let error = OperationError(.dependencyCycle, "Dependency cycle\(place): \(path).")
      refused[ObjectIdentifier(operation)] = (operation, error)
    }
  }

  /// Cancelling a group covers its members.
  private func cancel(_ refused: [ObjectIdentifier: (operation: AsyncOperation, error: OperationError)]) {
    let outermost = refused.values.map(\.operation).filter { operation in
      var outer = operation.core.withLock { $0.outer }
      while let next = outer, refused[ObjectIdentifier(next)] == nil { outer = next.core.withLock { $0.outer } }
      return outer == nil
    }
    for operation in outermost where operation.core.withLock({ $0.engine == nil }) {
      if let error = refused[ObjectIdentifier(operation)]?.error { operation.refuse(with: error) }
    }
    AsyncOperation.cancelAll(outermost, because: { refused[ObjectIdentifier($0)].map { FailureReport([$0.error]) } })
  }
}

extension WaitSnapshot.WaitKind {
  /// Whether an operation waits for this before it starts or goes on. A cancelled member still waits for its group.
  fileprivate var isOfStart: Bool {
    switch self {
    case .dependency, .slot, .key: true
    case .groupStart, .member, .ownStart, .task, .user: false
    }
  }
}
