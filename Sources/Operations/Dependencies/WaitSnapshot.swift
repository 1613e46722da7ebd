import Foundation

/// The graph of what operations and tasks wait for, in O(n + e) and without recursion. They change while they are read, and
/// one lock is held at a time. A cycle is therefore real only if all of its nodes are still current at the end.
struct WaitSnapshot {
  private enum Identity: Hashable {
    /// The end of an operation, a claimant, or a wait of a task.
    case end(ObjectIdentifier)
    case start(ObjectIdentifier)
    case slots(ObjectIdentifier)
    case key(KeyTable.Obstacle)
  }

  private(set) var nodes: [Node] = []
  private var indices: [Identity: Int] = [:]
  /// For each node of a key that has one, what must leave the key. The weights and the limits of its holders differ.
  private var demands: [Int: KeyDemand] = [:]
  /// The places of operations, some of which do not store theirs. A released operation's address could be reused.
  private var places: [ObjectIdentifier: (operation: Operation, place: WaitPlace)] = [:]
  private var searched: [ObjectIdentifier: WaitPlace] = [:]
  /// The operations whose place is unknown. A later part of the walk may still find the place.
  private var unplaced: [Int] = []
  /// The waits of tasks, by their work.
  private var taskWaits: [ObjectIdentifier: [TaskWait]] = [:]
  private let scope: Scope

  /// Reads what operations and waits need in order to end, directly or indirectly. The operations are the first nodes.
  init(
    of operations: [Operation] = [],
    waits: [TaskWait] = [],
    scope: Scope = .unfinished,
    lookingInto queues: [OperationQueue] = []
  ) {
    self.scope = scope
    readTaskWaits()
    for queue in queues { look(into: .queue(queue)) }
    for operation in operations { _ = index(of: operation) }
    for wait in waits { _ = index(of: wait) }
    var next = 0
    repeat {
      while next < nodes.count {
        visit(next)
        next += 1
      }
      for node in exchange(&unplaced, with: []) {
        if let place = nodes[node].operation.flatMap({ place(of: $0) }) { waitForSlot(node, in: place) }
      }
    } while next < nodes.count
  }

  private mutating func readTaskWaits() {
    if scope == .unfinished { taskWaits = Dictionary(grouping: WaitWatch.waits) { ObjectIdentifier($0.work) } }
  }

  /// Returns the nodes that wait for the same as before. Of a set of such nodes, there was a moment at which all of them did.
  func current(of items: [Int]) -> Set<Int> {
    var again = self
    again.readTaskWaits()
    again.searched = [:]
    for item in items {
      again.nodes[item].waits = []
      again.visit(item)
    }
    let current = items.filter { item in
      let other = again.nodes[item]
      return nodes[item].stamp == other.stamp && nodes[item].waits.elementsEqual(other.waits) { $0 == $1 }
    }
    return Set(current)
  }

  func order(rank: (Int) -> Int = { _ in 0 }) -> WaitOrder {
    WaitOrder(nodes.map { $0.waits.map(\.node) }, needed: { nodes[$0].needed }, demands: demands, rank: rank)
  }

  func withoutWaits(of items: [Int]) -> Self {
    var other = self
    for item in items { other.nodes[item].waits = [] }
    return other
  }

  func isStart(_ node: Int) -> Bool { if case .operation(_, true) = nodes[node].subject { true } else { false } }

  func end(of operation: AsyncOperation) -> Int? { indices[.end(ObjectIdentifier(operation))] }

  // MARK: Nodes

  private mutating func index(_ id: Identity, _ subject: Subject) -> Int {
    if let index = indices[id] { return index }
    indices[id] = nodes.count
    nodes.append(Node(subject: subject))
    return nodes.count - 1
  }

  private mutating func index(of operation: Operation, isStart: Bool = false) -> Int {
    let operation = operation.asMember ?? operation
    let id = ObjectIdentifier(operation)
    return index(isStart ? .start(id) : .end(id), .operation(operation, isStart: isStart))
  }

  private mutating func index(of claimant: KeyClaimant, isLending: Bool = false, isStart: Bool = false) -> Int {
    if !isLending, let operation = claimant.operation {
      return index(of: operation, isStart: isStart && operation.runsOthersInside)
    }
    return index(.end(ObjectIdentifier(claimant)), .task(claimant))
  }

  private mutating func index(of place: WaitPlace) -> Int { index(.slots(place.id), .slots(of: place)) }

  /// Nil if the wait is over.
  private mutating func index(of wait: TaskWait) -> Int? {
    let id = Identity.end(ObjectIdentifier(wait))
    switch wait.target {
    case .operation(let operation): return operation.isFinished ? nil : index(of: operation)
    case .keys(let keys): return index(of: keys)
    case .turn(let queue): return index(of: .queue(queue))
    case .room(let engine, let count): return engine.owner.map { index(id, .room(in: $0, below: count)) }
    case .oneOf(let operations): return index(id, .oneOf(operations))
    }
  }

  private mutating func addWait(_ node: Int, for other: Int, _ kind: WaitKind) {
    nodes[node].waits.append((other, kind))
  }

  private mutating func addTaskWaits(_ node: Int, of work: Work?) {
    for wait in work.flatMap({ taskWaits[ObjectIdentifier($0)] }) ?? [] {
      if let index = index(of: wait) { addWait(node, for: index, .task(wait)) }
    }
  }

  // MARK: Reading

  private mutating func visit(_ node: Int) {
    switch nodes[node].subject {
    case .operation(let operation, let isStart): visit(node, operation, isStart: isStart)
    case .task(let claimant): visit(node, claimant)
    case .slots(let place):
      // Suspended and free slots wait for no node.
      let (isSuspended, limit, operations) = place.slots
      if !isSuspended, limit > 0 { waitForUsers(node, operations.filter(\.usesSlot), limit: limit) }
    case .key(let obstacle): visitKey(node, obstacle)
    case .room(let group, let count): waitForUsers(node, group.engine.members, limit: count)
    case .oneOf(let operations):
      let operations = operations()
      waitForUsers(node, operations, limit: operations.count)
    }
  }

  private mutating func visit(_ node: Int, _ operation: Operation, isStart: Bool) {
    let own = operation as? AsyncOperation
    let inside = isStart ? [] : own?.inside ?? []
    let group = isStart ? nil : (inside.last ?? own) as? GroupOperation
    let stamp = Stamp(of: operation)
    nodes[node].stamp = stamp
    if scope == .unfinished { nodes[node].place = place(of: operation) }
    let isEnding = scope == .unfinished && stamp.phase.isOver
    let members = isEnding ? [] : group?.members.filter { scope != .unfinished || !$0.isFinished } ?? []
    if !members.isEmpty, scope != .unfinished || stamp.phase.isBeforeExecution {
      addWait(node, for: index(of: operation, isStart: true), .ownStart)
    } else {
      waitForDependencies(node, operation.represented.dependencies, stamp)
      let outer = own?.core.withLock { $0.outer }
      if !stamp.isCancelled || scope != .unfinished, let outer, outer.isPendingGroup {
        addWait(node, for: index(of: outer, isStart: true), .groupStart)
      }
    }
    for member in members { addWait(node, for: index(of: member), .member) }
    for inner in inside { waitForDependencies(node, inner.dependencies, Stamp(of: inner)) }
    guard scope == .unfinished, !isEnding else { return }
    if let group { look(into: .group(group)) }
    for worker in [own].compactMap(\.self) + inside { addTaskWaits(node, of: worker.core.withLock { $0.work }) }
    if nodes[node].waits.isEmpty { waitForStart(node, of: operation) }
  }

  private mutating func waitForDependencies(_ node: Int, _ dependencies: [Operation], _ stamp: Stamp) {
    if scope == .unfinished, !stamp.phase.isPending || stamp.isCancelled { return }
    for dependency in dependencies where scope != .unfinished || !dependency.isFinished {
      if scope == .free, (dependency as? AsyncOperation)?.isFree == false { continue }
      addWait(node, for: index(of: dependency), .dependency)
    }
  }

  private mutating func waitForStart(_ node: Int, of operation: Operation) {
    let own = operation as? AsyncOperation
    let stamp = nodes[node].stamp
    switch stamp.phase.wait {
    // A cancelled operation waits only for a slot, in which it finishes.
    case .keys where !stamp.phase.isPending || !stamp.isCancelled:
      if let keys = own?.core.withLock({ $0.keys }) { waitForKeys(node, keys) }
    case .keys, .groupStart, .dependencies, .slot:
      if let place = nodes[node].place {
        waitForSlot(node, in: place)
      } else if own?.isFree ?? true {
        unplaced.append(node)
      }
    case .conditions, .delay, nil: break
    }
  }

  // MARK: Slots

  private func place(of operation: Operation) -> WaitPlace? {
    (operation as? AsyncOperation)?.ownPlace ?? places[ObjectIdentifier(operation)]?.place
  }

  /// Records the places of the operations in a queue or a group, and in the groups among them, at any depth.
  private mutating func look(into place: WaitPlace) {
    var toDo = [place]
    while let place = toDo.popLast() {
      guard searched.updateValue(place, forKey: place.id) == nil else { continue }
      for operation in place.slots.operations {
        places[ObjectIdentifier(operation)] = (operation, place)
        if let group = (operation as? AsyncOperation)?.groupInside { toDo.append(.group(group)) }
      }
    }
  }

  private mutating func waitForSlot(_ node: Int, in place: WaitPlace) {
    nodes[node].place = place
    switch place {
    case .group(let group) where group.state == .pending:
      addWait(node, for: index(of: group, isStart: true), .groupStart)
    // A cancelled member needs no slot to finish.
    case .group where nodes[node].stamp.isCancelled: break
    case .group: addWait(node, for: index(of: place), .slot)
    case .queue:
      look(into: place)
      guard let operation = nodes[node].operation else { return }
      // The ledger is read before the readiness, which therefore reflects any earlier notification of Foundation.
      let own = operation as? AsyncOperation
      let isNotificationPending = own?.core.withLock { !$0.isSatisfied || $0.lifecycle.isCancelled } ?? false
      if isNotificationPending || own?.isReadyForFoundation ?? operation.isReady {
        addWait(node, for: index(of: place), .slot)
      }
    }
  }

  private mutating func waitForUsers(_ node: Int, _ users: [Operation], limit: Int) {
    if users.count < limit { return }
    // If the limit has been lowered, there may be more users than the limit.
    nodes[node].needed = users.count - limit + 1
    for user in users { addWait(node, for: index(of: user), .user) }
  }

  // MARK: Keys

  /// A claimant that has ended waits for those that still use its keys.
  private mutating func visit(_ node: Int, _ claimant: KeyClaimant) {
    switch KeyRegistry.withTable({ $0.state(of: claimant) }) {
    case nil, .away, .called: break
    case .waiting: waitForKeys(node, claimant)
    case .holding, .replaced: addTaskWaits(node, of: claimant)
    case .lending:
      let borrowers = KeyRegistry.withTable { table in claimant.ticket.map { table.borrowers(of: $0) } ?? [] }
      for borrower in borrowers { addWait(node, for: index(of: borrower), .user) }
    }
  }

  private mutating func waitForKeys(_ node: Int, _ claimant: KeyClaimant) {
    for (obstacle, limit) in claimant.obstacles {
      addWait(node, for: index(.key(obstacle), .key(obstacle)), .key(limit: limit))
    }
  }

  private mutating func visitKey(_ node: Int, _ obstacle: KeyTable.Obstacle) {
    var demand = KeyDemand(obstacle)
    for (claimant, ticket, share, isLending) in KeyRegistry.withTable({ $0.users(of: obstacle).first }) {
      let user = index(of: claimant, isLending: isLending, isStart: !obstacle.areHolders)
      demand?.add(ticket, share, of: user)
      addWait(node, for: user, .user)
    }
    // Holders may have left meanwhile.
    if demand?.isMet == true { nodes[node].waits = [] }
    demands[node] = demand
  }
}
