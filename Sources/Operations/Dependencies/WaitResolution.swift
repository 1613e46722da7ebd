import Foundation

extension WaitSnapshot {
  /// A wait that can give way: that of a task, or else that of the node itself, for its keys or its start. Of waits that
  /// began together, that of a task gives way.
  private typealias Giver = (node: Int, wait: TaskWait?, rank: (time: Int, isTask: Int, number: Int))
  private typealias Refusals = [ObjectIdentifier: (operation: AsyncOperation, error: OperationError)]

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
    var order = order()
    if order.stuck.isEmpty { return false }
    let current = current(of: order.stuck.flatMap(\.items))
    var isResolved: [Bool] = []
    var refusals: Refusals = [:]
    for (index, set) in order.stuck.enumerated() {
      let isCurrent = set.items.allSatisfy(current.contains)
      let waits = set.items.flatMap { nodes[$0].waits }
      let isOfDependencies = waits.allSatisfy { order.setOf[$0.node] != index || $0.kind.isOfDependencies }
      if isOfDependencies, !set.cycle.isEmpty {
        let blocked = blocked(by: set.items, order)
        isResolved.append(!blocked.isEmpty)
        if isCurrent { refuse(blocked, because: set.cycle, &refusals) }
      } else if waits.contains(where: { order.setOf[$0.node].map { $0 < index && isResolved[$0] } ?? false }) {
        isResolved.append(true)
      } else {
        // What waits for a cycle of which none can give way, such as one of plain operations, goes on waiting.
        isResolved.append(!set.cycle.isEmpty && giveWay(set.items, &order, isCurrent: isCurrent))
      }
    }
    cancel(refusals)
    return isResolved.contains(true)
  }

  // MARK: The last wait of a set

  private static let searchesAtMost = 16

  private func giveWay(_ items: [Int], _ order: inout WaitOrder, isCurrent: Bool) -> Bool {
    if let first = items.compactMap({ claimant(of: $0) }).filter(mayPass).compactMap(\.ticket).min() {
      if isCurrent { KeyRegistry.change { $0.prefer(first, &$1) } }
      return true
    }
    let latest = items.flatMap { givers(of: $0, order) }.sorted { $0.rank > $1.rank }
    let helping = latest.prefix(Self.searchesAtMost).first { letsOtherEnd($0.node, &order) }
    guard let last = helping ?? latest.first else { return false }
    if isCurrent { refuse(last, order) }
    return true
  }

  private func refuse(_ giver: Giver, _ order: WaitOrder) {
    let operation = giver.wait == nil ? nodes[giver.node].operation as? AsyncOperation : nil
    let result = operation == nil ? "would" : "did not run because it would"
    let reason = sentence(of: cycle(from: giver, order))
    let error = OperationError(.waitCycle, "\(name(giver.node)) \(result) wait forever: it \(reason).")
    if let operation { return operation.refuse(with: error) }
    if let wait = giver.wait { wait.refuse(with: error) } else { claimant(of: giver.node)?.cancel(with: error) }
  }

  /// Whether the end of one node lets another operation or task of its set end or start.
  private func letsOtherEnd(_ node: Int, _ order: inout WaitOrder) -> Bool {
    // A cancelled member does not end before its group starts.
    if (nodes[node].operation as? AsyncOperation)?.ownPlace?.group?.state == .pending { return false }
    return order.items(after: node).contains { !nodes[$0].isResource }
  }

  /// Whether a claim passes those before it, which wait for a holder around it, or where no slot is free.
  private func mayPass(_ claimant: KeyClaimant) -> Bool {
    guard let ticket = claimant.ticket else { return false }
    let (others, isInHolder) = KeyRegistry.withTable { $0.claimants(before: ticket) }
    return !others.isEmpty
      && (isInHolder || others.allSatisfy { $0.operation?.ownPlace?.isFull == true })
  }

  private func claimant(of node: Int) -> KeyClaimant? {
    switch nodes[node].subject {
    case .operation(let operation, _): (operation as? AsyncOperation)?.core.withLock { $0.keys }
    case .task(let claimant): claimant
    case .slots, .key, .room, .oneOf: nil
    }
  }

  private func began(_ operation: AsyncOperation) -> Int { operation.core.withLock { $0.since?.milliseconds ?? 0 } }

  private func givers(of node: Int, _ order: WaitOrder) -> [Giver] {
    let waits = nodes[node].waits.filter { order.setOf[$0.node] == order.setOf[node] }
    switch nodes[node].subject {
    case _ where waits.isEmpty: return []
    case .task(let keys as TaskKeys) where keys.isWaiting:
      return [(node, nil, (keys.began?.milliseconds ?? 0, 1, keys.ticket?.number ?? 0))]
    case .operation(let operation as AsyncOperation, _) where waits.contains { $0.kind.isOfStart }:
      if nodes[node].stamp.phase.wait == nil || nodes[node].stamp.isCancelled { return [] }
      return [(node, nil, (began(operation), 0, claimant(of: node)?.ticket?.number ?? node))]
    case .operation, .task:
      return waits.compactMap { wait in
        guard case .task(let wait) = wait.kind, wait.isRefusable else { return nil }
        return (node, wait, (wait.began.milliseconds, 1, wait.number))
      }
    case .slots, .key, .room, .oneOf: return []
    }
  }

  /// The shortest cycle that begins with a wait.
  private func cycle(from giver: Giver, _ order: WaitOrder) -> [Int] {
    let waits = nodes[giver.node].waits.filter { giver.wait == nil || $0.kind == giver.wait.map(WaitKind.task) }
    let second = Set(waits.map(\.node))
    // The search goes back from the node.
    var next: [Int: Int] = [:]
    var found = [giver.node]
    var done = 0
    while !second.contains(found[done]) {
      let dependents = order.dependents[found[done]]
      for other in dependents where order.setOf[other] == order.setOf[giver.node] && next[other] == nil {
        next[other] = found[done]
        found.append(other)
      }
      done += 1
    }
    return [giver.node] + sequence(first: found[done]) { next[$0] }.prefix { $0 != giver.node }
  }

  // MARK: Cycles of dependencies

  /// Returns the members on a cycle of dependencies, and their dependents, or else its operation that was queued last.
  private func blocked(by items: [Int], _ order: WaitOrder) -> [AsyncOperation] {
    var found: Set<Int> = []
    // Cancelling a member does not cancel its group, so that only dependencies lead to the cycle.
    let dependents = { (item: Int) in
      order.dependents[item].filter { waiter in
        order.setOf[waiter] != nil
          && nodes[waiter].waits.contains { $0.node == item && ($0.kind == .dependency || $0.kind == .ownStart) }
      }
    }
    let all = postorder(from: items, isNew: { found.insert($0).inserted }, next: dependents)
    let operations = all.filter { !nodes[$0].stamp.isCancelled }.compactMap { nodes[$0].operation as? AsyncOperation }
    // A member cannot finish before its group starts.
    let starts = Set(items.filter(isStart).compactMap { nodes[$0].operation }.map { ObjectIdentifier($0) })
    let members = operations.filter { operation in
      operation.ownPlace?.group.map { !starts.contains(ObjectIdentifier($0)) } ?? false
    }
    if !members.isEmpty { return members }
    let enqueued = operations.filter { operation in operation.core.withLock { $0.queue != nil } }
    return enqueued.max { began($0) < began($1) }.map { [$0] } ?? []
  }

  private func refuse(_ blocked: [AsyncOperation], because cycle: [Int], _ refusals: inout Refusals) {
    let operations = cycle.compactMap { nodes[$0].operation }.withoutRepeats { ObjectIdentifier($0) }
    let names = operations.prefix(16).map(\.displayName)
    let others = operations.count - names.count
    let path = (names + (others > 0 ? ["… \(others) more …"] : []) + names.prefix(1)).joined(separator: " → ")
    for operation in blocked where refusals[ObjectIdentifier(operation)] == nil {
      let place = operation.ownPlace?.name.map { " in “\($0)”" } ?? ""
      let error = OperationError(.dependencyCycle, "Dependency cycle\(place): \(path).")
      refusals[ObjectIdentifier(operation)] = (operation, error)
    }
  }

  /// Cancelling a group covers its members.
  private func cancel(_ refusals: Refusals) {
    let outermost = refusals.values.map(\.operation).filter { operation in
      var outer = operation.core.withLock { $0.outer }
      while let next = outer, refusals[ObjectIdentifier(next)] == nil { outer = next.core.withLock { $0.outer } }
      return outer == nil
    }
    for operation in outermost where operation.core.withLock({ $0.engine == nil }) {
      if let error = refusals[ObjectIdentifier(operation)]?.error { operation.refuse(with: error) }
    }
    AsyncOperation.cancelAll(outermost, because: { refusals[ObjectIdentifier($0)].map { FailureReport([$0.error]) } })
  }
}
