import Foundation

/// The graph of what operations and tasks wait for, in O(n + e) and without recursion. They change while they are read, and
/// one lock is held at a time. A cycle is therefore real only if all of its nodes are still current at the end.
struct WaitSnapshot {
  private(set) var nodes: [Node] = []
  private var ends: [ObjectIdentifier: Int] = [:]
  private var starts: [ObjectIdentifier: Int] = [:]
  private var claimants: [ObjectIdentifier: Int] = [:]
  private var slots: [ObjectIdentifier: Int] = [:]
  private var keys: [KeyTable.Obstacle: Int] = [:]
  private var others: [ObjectIdentifier: Int] = [:]
  /// The places of operations, some of which do not store theirs. A released operation's address could be reused.
  private var places: [ObjectIdentifier: (operation: Operation, place: WaitPlace)] = [:]
  private var searched: [ObjectIdentifier: WaitPlace] = [:]
  /// The operations whose place is unknown. A later part of the walk may still find the place.
  private var unplaced: [(node: Int, operation: Operation)] = []
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
    if scope == .unfinished { taskWaits = Dictionary(grouping: WaitWatch.waits) { ObjectIdentifier($0.work) } }
    for queue in queues { look(into: .queue(queue)) }
    for operation in operations { _ = index(of: operation) }
    for wait in waits { _ = index(of: wait) }
    var next = 0
    repeat {
      while next < nodes.count {
        visit(next)
        next += 1
      }
      for (node, operation) in exchange(&unplaced, with: []) {
        if let (_, place) = places[ObjectIdentifier(operation)] { waitForSlot(node, of: operation, in: place) }
      }
    } while next < nodes.count
  }

  /// Returns the nodes that wait for the same as before. Of a set of such nodes, there was a moment at which all of them did.
  func current(of items: [Int]) -> Set<Int> {
    var again = self
    again.taskWaits = Dictionary(grouping: WaitWatch.waits) { ObjectIdentifier($0.work) }
    (again.searched, again.unplaced) = ([:], [])
    for item in items {
      again.nodes[item].waits = []
      again.visit(item)
    }
    let current = items.filter { item in
      let (node, other) = (nodes[item], again.nodes[item])
      return node.stamp == other.stamp && node.waits.elementsEqual(other.waits) { $0 == $1 }
    }
    return Set(current)
  }

  func order(rank: (Int) -> Int = { _ in 0 }) -> WaitOrder {
    let demands = nodes.indices.compactMap { node in nodes[node].demand.map { (node, $0) } }
    return WaitOrder(
      nodes.map { $0.waits.map(\.node) },
      needed: { nodes[$0].needed },
      demands: Dictionary(uniqueKeysWithValues: demands),
      rank: rank
    )
  }

  func withoutWaits(of items: [Int]) -> Self {
    var other = self
    for item in items { other.nodes[item].waits = [] }
    return other
  }

  func isStart(_ node: Int) -> Bool { if case .operation(_, true) = nodes[node].subject { true } else { false } }

  // MARK: Nodes

  private mutating func add(_ subject: Subject) -> Int {
    nodes.append(Node(subject: subject))
    return nodes.count - 1
  }

  private mutating func index(of operation: Operation, isStart: Bool = false) -> Int {
    let operation = operation.asMember ?? operation
    let id = ObjectIdentifier(operation)
    if let index = isStart ? starts[id] : ends[id] { return index }
    if isStart { starts[id] = nodes.count } else { ends[id] = nodes.count }
    return add(.operation(operation, isStart: isStart))
  }

  private mutating func index(of claimant: KeyClaimant) -> Int {
    let id = ObjectIdentifier(claimant)
    if let index = claimants[id] { return index }
    claimants[id] = nodes.count
    return add(.task(claimant))
  }

  private mutating func index(of place: WaitPlace) -> Int {
    if let index = slots[place.id] { return index }
    slots[place.id] = nodes.count
    return add(.slots(of: place))
  }

  private mutating func index(of obstacle: KeyTable.Obstacle) -> Int {
    if let index = keys[obstacle] { return index }
    keys[obstacle] = nodes.count
    return add(.key(obstacle))
  }

  /// Nil if the wait is over.
  private mutating func index(of wait: TaskWait) -> Int? {
    switch wait.target {
    case .operation(let operation): return operation.isFinished ? nil : index(of: operation)
    case .keys(let keys): return index(of: keys)
    case .turn(let queue): return index(of: .queue(queue))
    case .room(let engine, let count): return engine.owner.map { index(of: wait, .room(in: $0, below: count)) }
    case .oneOf(let operations): return index(of: wait, .oneOf(operations))
    }
  }

  private mutating func index(of wait: TaskWait, _ subject: Subject) -> Int {
    if let index = others[ObjectIdentifier(wait)] { return index }
    others[ObjectIdentifier(wait)] = nodes.count
    return add(subject)
  }

  func end(of operation: AsyncOperation) -> Int? { ends[ObjectIdentifier(operation)] }

  private mutating func addWait(_ node: Int, for other: Int, _ kind: WaitKind) {
    nodes[node].waits.append((other, kind))
  }

  private mutating func addTaskWaits(_ node: Int, of work: Work?) {
    guard let work else { return }
    for wait in taskWaits[ObjectIdentifier(work)] ?? [] {
      if let index = index(of: wait) { addWait(node, for: index, .task(wait)) }
    }
  }

  // MARK: Reading

  private mutating func visit(_ node: Int) {
    switch nodes[node].subject {
    case .operation(let operation, let isStart): visit(node, operation, isStart: isStart)
    case .task(let claimant): visit(node, claimant)
    case .slots(let place): visitSlots(node, place)
    case .key(let obstacle): visitKey(node, obstacle)
    case .room(let group, let count):
      let members = group.engine.members
      if members.count < count { return }
      nodes[node].needed = members.count - count + 1
      for member in members { addWait(node, for: index(of: member), .user) }
    case .oneOf(let operations):
      nodes[node].needed = 1
      for operation in operations() { addWait(node, for: index(of: operation), .user) }
    }
  }

  private mutating func visit(_ node: Int, _ operation: Operation, isStart: Bool) {
    guard let own = operation as? AsyncOperation else {
      let stamp = Stamp(of: operation)
      (nodes[node].stamp, nodes[node].place) = (stamp, places[ObjectIdentifier(operation)]?.place)
      waitForDependencies(node, operation.dependencies, stamp)
      if scope == .unfinished, nodes[node].waits.isEmpty, stamp.phase.isPending { findSlot(node, of: operation) }
      return
    }
    let inside = own.runsOthersInside && !isStart ? own.inside : []
    let group = inside.last as? GroupOperation
    let stamp = Stamp(of: own)
    let (dependencies, outer, work) = own.core.withLock { core in
      (core.ledger.dependencies.entries, core.outer, core.work)
    }
    nodes[node].stamp = stamp
    if scope == .unfinished { nodes[node].place = WaitPlace(of: own) ?? places[ObjectIdentifier(own)]?.place }
    let isEnding = scope == .unfinished && stamp.phase.isOver
    let members = isEnding ? [] : group?.members.filter { scope != .unfinished || !$0.isFinished } ?? []
    if !members.isEmpty, scope != .unfinished || stamp.phase.isBeforeExecution {
      addWait(node, for: index(of: own, isStart: true), .ownStart)
    } else {
      let shown = own.represented
      waitForDependencies(node, shown === own ? dependencies.map(\.operation) : shown.dependencies, stamp)
      if !stamp.isCancelled || scope != .unfinished, let outer, outer.isPendingGroup {
        addWait(node, for: index(of: outer, isStart: true), .groupStart)
      }
    }
    for member in members { addWait(node, for: index(of: member), .member) }
    for inner in inside where inner !== own { waitForDependencies(node, inner.dependencies, Stamp(of: inner)) }
    guard scope == .unfinished, !isEnding else { return }
    if let group { look(into: .group(group)) }
    addTaskWaits(node, of: work)
    for inner in inside where inner !== own { addTaskWaits(node, of: inner.core.withLock { $0.work }) }
    if nodes[node].waits.isEmpty { waitForStart(node, of: own, stamp) }
  }

  private mutating func waitForDependencies(_ node: Int, _ dependencies: [Operation], _ stamp: Stamp) {
    if scope == .unfinished, !stamp.phase.isPending || stamp.isCancelled { return }
    for dependency in dependencies where scope != .unfinished || !dependency.isFinished {
      if scope == .free, (dependency as? AsyncOperation)?.isFree == false { continue }
      addWait(node, for: index(of: dependency), .dependency)
    }
  }

  private mutating func waitForStart(_ node: Int, of operation: AsyncOperation, _ stamp: Stamp) {
    switch stamp.phase {
    // A cancelled operation waits only for a slot, in which it finishes.
    case .pending where stamp.isCancelled: findSlot(node, of: operation)
    case .pending(.groupStart), .pending(.dependencies), .pending(.slot), .paused(.slot): findSlot(node, of: operation)
    case .pending(.keys), .suspended(.keys), .paused(.keys):
      if let keys = operation.core.withLock({ $0.keys }) { waitForKeys(node, keys) }
    case .pending, .suspended, .paused, .preparing, .executing, .skipped, .ending, .finished: break
    }
  }

  // MARK: Slots

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

  private mutating func findSlot(_ node: Int, of operation: Operation) {
    if let place = nodes[node].place {
      waitForSlot(node, of: operation, in: place)
    } else if (operation as? AsyncOperation)?.isFree ?? true {
      unplaced.append((node, operation))
    }
  }

  private mutating func waitForSlot(_ node: Int, of operation: Operation, in place: WaitPlace) {
    nodes[node].place = place
    switch place {
    case .group(let group) where group.state == .pending:
      addWait(node, for: index(of: group, isStart: true), .groupStart)
    // A cancelled member needs no slot to finish.
    case .group where nodes[node].stamp.isCancelled: break
    case .group: addWait(node, for: index(of: place), .slot)
    case .queue:
      look(into: place)
      // The ledger is read before the readiness, which therefore reflects any earlier notification of Foundation.
      let own = operation as? AsyncOperation
      let isNotificationPending = own?.core.withLock { !$0.isSatisfied || $0.lifecycle.isCancelled } ?? false
      if isNotificationPending || own?.isReadyForFoundation ?? operation.isReady {
        addWait(node, for: index(of: place), .slot)
      }
    }
  }

  /// Suspended and free slots wait for no node.
  private mutating func visitSlots(_ node: Int, _ place: WaitPlace) {
    let (isSuspended, limit, operations) = place.slots
    if isSuspended || limit <= 0 { return }
    let users = operations.filter(\.usesSlot)
    if users.count < limit { return }
    // If the limit has been lowered, more operations than the limit may be executing.
    nodes[node].needed = users.count - limit + 1
    for user in users { addWait(node, for: index(of: user), .user) }
  }

  // MARK: Keys

  /// A claimant that has ended waits for those that still use its keys.
  private mutating func visit(_ node: Int, _ claimant: KeyClaimant) {
    let (state, borrowers) = KeyRegistry.withTable { table in
      let state = claimant.ticket.flatMap { table.state(of: $0) }
      return (state, state == .lending ? claimant.ticket.map { table.borrowers(of: $0) } ?? [] : [])
    }
    switch state {
    case nil, .away, .called: break
    case .waiting: waitForKeys(node, claimant)
    case .holding, .replaced: addTaskWaits(node, of: claimant)
    case .lending: for borrower in borrowers { addWait(node, for: index(of: borrower, isLending: false), .user) }
    }
  }

  private mutating func waitForKeys(_ node: Int, _ claimant: KeyClaimant) {
    for (obstacle, limit) in claimant.obstacles { addWait(node, for: index(of: obstacle), .key(limit: limit)) }
  }

  private mutating func visitKey(_ node: Int, _ obstacle: KeyTable.Obstacle) {
    let users = KeyRegistry.withTable { $0.users(of: obstacle).first }
    var demand = KeyDemand(obstacle)
    for (claimant, ticket, share, isLending) in users {
      let user = index(of: claimant, isLending: isLending, isStart: !obstacle.areHolders)
      demand?.add(ticket, share, of: user)
      addWait(node, for: user, .user)
    }
    // Holders may have left meanwhile.
    if demand?.isMet == true { nodes[node].waits = [] }
    nodes[node].demand = demand
  }

  private mutating func index(of claimant: KeyClaimant, isLending: Bool, isStart: Bool = false) -> Int {
    if !isLending, let operation = claimant.operation {
      return index(of: operation, isStart: isStart && operation.runsOthersInside)
    }
    return index(of: claimant)
  }
}
