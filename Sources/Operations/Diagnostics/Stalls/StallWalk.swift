import Foundation

/// A walk that collects the nodes of a graph of waits: given operations, and everything that they wait for.
///
/// The walk only reads. It never notifies Foundation, and never grants or releases a key or a slot.
struct StallWalk {
  private(set) var nodes: [StallNode] = []
  private var toVisit: [Int] = []
  private var ends: [ObjectIdentifier: Int] = [:]
  private var beginnings: [ObjectIdentifier: Int] = [:]
  private var slots: [ObjectIdentifier: Int] = [:]
  /// The places of operations that do not store their place. The entries keep the operations alive, because the address
  /// of a released operation can be reused.
  private var places: [ObjectIdentifier: (operation: Operation, place: StallPlace)] = [:]
  private var queues: [ObjectIdentifier: OperationQueue] = [:]
  /// The operations whose place is unknown. A later part of the walk may still find the place.
  private var unplaced: [(node: Int, operation: Operation, isCertain: Bool)] = []

  init(from roots: [Operation], lookingInto queues: [OperationQueue]) {
    for queue in queues + [.main] { look(into: queue) }
    for operation in roots { _ = end(of: operation) }
    while true {
      while let node = toVisit.popLast() { visit(node) }
      if unplaced.isEmpty { break }
      let unplaced = unplaced
      self.unplaced = []
      for (node, operation, isCertain) in unplaced {
        let place = places[ObjectIdentifier(operation)]?.place
        nodes[node].place = place
        if case .group(let group)? = place, group.state == .pending {
          wait(node, for: beginning(of: group), .beginning)
        } else if nodes[node].waits.isEmpty, nodes[node].obstacle == nil {
          if let place {
            wait(node, in: place, operation)
          } else {
            nodes[node].obstacle = .notEnqueued(isCertain: isCertain)
          }
        }
      }
    }
  }

  private mutating func look(into queue: OperationQueue) {
    guard queues.updateValue(queue, forKey: ObjectIdentifier(queue)) == nil else { return }
    let operations = queue.operations
    for operation in operations { places[ObjectIdentifier(operation)] = (operation, .queue(queue)) }
    look(into: operations)
  }

  /// Records the places of plain Foundation operations in groups, at any depth.
  private mutating func look(into operations: [Operation]) {
    var toDo = operations
    while let operation = toDo.popLast() {
      guard let own = operation as? AsyncOperation, own.runsOthersInside else { continue }
      toDo += notePlaces(in: own)
    }
  }

  /// Records the places of plain Foundation operations in a group.
  ///
  /// - Returns: The members of the operation.
  private mutating func notePlaces(in operation: AsyncOperation) -> [Operation] {
    let members = operation.members
    guard let group = operation as? GroupOperation else { return members }
    for member in members where !(member is AsyncOperation) {
      places[ObjectIdentifier(member)] = (member, .group(group))
    }
    return members
  }

  // MARK: Nodes

  private mutating func add(_ subject: StallNode.Subject) -> Int {
    nodes.append(StallNode(subject: subject))
    toVisit.append(nodes.count - 1)
    return nodes.count - 1
  }

  private mutating func end(of operation: Operation) -> Int {
    let id = ObjectIdentifier(operation)
    if let node = ends[id] { return node }
    let node = add(.operation(operation))
    ends[id] = node
    return node
  }

  private mutating func beginning(of group: AsyncOperation) -> Int {
    let id = ObjectIdentifier(group)
    if let node = beginnings[id] { return node }
    let node = add(.beginning(of: group))
    beginnings[id] = node
    return node
  }

  private mutating func slots(of place: StallPlace) -> Int {
    if let node = slots[place.id] { return node }
    let node = add(.slots(of: place))
    slots[place.id] = node
    return node
  }

  private mutating func wait(_ node: Int, for other: Int, _ kind: StallNode.Wait.Kind) {
    nodes[node].waits.append(StallNode.Wait(node: other, kind: kind))
  }

  // MARK: Waits

  private mutating func visit(_ node: Int) {
    switch nodes[node].subject {
    case .operation(let operation as AsyncOperation): visit(node, operation)
    case .operation(let operation): visit(node, plain: operation)
    case .beginning(let group):
      nodes[node].stamp = StallNode.Stamp(of: group)
      _ = notePlaces(in: group)
      waitToBegin(node, group)
    case .slots(let place): visit(node, place)
    }
  }

  private mutating func visit(_ node: Int, _ operation: AsyncOperation) {
    let (stamp, time, pause, isPauseOver, condition, place) = operation.core.withLock { core in
      let pause = core.extras?.pause
      return (StallNode.Stamp(core), core.startTime, pause, pause?.isOver, core.extras?.condition, core.stallPlace)
    }
    nodes[node].stamp = stamp
    nodes[node].elapsed = stamp.phase == .pending ? nil : time.elapsed
    nodes[node].place = place() ?? places[ObjectIdentifier(operation)]?.place
    switch stamp.phase {
    case .pending:
      let members = waitForMembers(node, operation)
      if members == 0 { waitToBegin(node, operation) } else { wait(node, for: beginning(of: operation), .beginning) }
    case .preparing: nodes[node].obstacle = .starting(nil)
    case .evaluating:
      // The operation has a slot, and waits for its keys again or for a condition.
      if waitForKeys(node, operation) == 0 {
        nodes[node].obstacle = condition.map { .condition($0) } ?? .starting(nil)
      }
    case .executing:
      if waitForMembers(node, operation) > 0 { return }
      if let pause, let isPauseOver {
        if isPauseOver {
          waitForSlot(node, operation)
        } else {
          nodes[node].obstacle = .backingOff(before: pause.next, remaining: pause.remaining())
        }
      } else if let group = operation as? GroupOperation {
        nodes[node].obstacle = group.engine.isOpen ? .waitsForMembers(isSuspended: group.isSuspended) : .ending
      } else {
        nodes[node].obstacle = .executing
      }
    case .skipped: if waitForMembers(node, operation) == 0 { nodes[node].obstacle = .ending }
    case .ending, .finished: nodes[node].obstacle = .ending
    }
  }

  private mutating func visit(_ node: Int, plain operation: Operation) {
    nodes[node].stamp = StallNode.Stamp(of: operation)
    nodes[node].place = places[ObjectIdentifier(operation)]?.place
    switch nodes[node].stamp.phase {
    case .finished: nodes[node].obstacle = .ending
    case .executing: nodes[node].obstacle = .executing
    default: waitToBegin(node, operation)
    }
  }

  /// Adds a wait for each member that has not finished.
  ///
  /// - Returns: The number of added waits.
  private mutating func waitForMembers(_ node: Int, _ operation: AsyncOperation) -> Int {
    // The report omits the inner group of an operation that is not a group.
    let inside = notePlaces(in: operation)
    if !(operation is GroupOperation) { for case let group as AsyncOperation in inside { _ = notePlaces(in: group) } }
    let members = operation.shownMembers.filter { !$0.isFinished }
    for member in members { wait(node, for: end(of: member), .member) }
    return members.count
  }

  private mutating func waitToBegin(_ node: Int, _ operation: Operation) {
    // A cancelled operation waits only for a slot, in which it finishes.
    if !operation.isCancelled {
      for dependency in operation.unfinishedDependencies {
        wait(node, for: end(of: dependency), .dependency)
      }
      if let own = operation as? AsyncOperation {
        if nodes[node].waits.isEmpty { _ = waitForKeys(node, own) }
        if !nodes[node].waits.isEmpty, let group = own.enclosing as? GroupOperation, group.state == .pending {
          wait(node, for: beginning(of: group), .beginning)
        }
      }
    }
    let isPlain = !(operation is AsyncOperation)
    if isPlain || (nodes[node].waits.isEmpty && nodes[node].obstacle == nil) { waitForSlot(node, operation) }
  }

  private mutating func waitForKeys(_ node: Int, _ operation: AsyncOperation) -> Int {
    guard let request = operation.core.withLock({ $0.extras?.permit }) as? KeyRequest else { return 0 }
    return waitForKeys(node, request)
  }

  /// Adds a wait for each operation that keeps this one from a key.
  ///
  /// - Returns: The number of waits, or 1 if the operation waits for a throttled key.
  private mutating func waitForKeys(_ node: Int, _ request: KeyRequest) -> Int {
    var count = 0
    for obstacle in request.obstacles {
      guard let operation = obstacle.operation else { continue }
      wait(node, for: end(of: operation), .key(obstacle.key, limit: obstacle.limit, isHeld: obstacle.isHolder))
      count += 1
    }
    if count == 0, let key = request.throttledKey {
      nodes[node].obstacle = .throttled(key)
      count = 1
    }
    return count
  }

  private mutating func waitForSlot(_ node: Int, _ operation: Operation) {
    guard let own = operation as? AsyncOperation else {
      return unplaced.append((node, operation, isCertain: false))
    }
    let (place, hasCheckedReadiness) = own.core.withLock {
      ($0.stallPlace, $0.ledger.isWatched || $0.lifecycle.isCancelled)
    }
    if let place = place() {
      wait(node, in: place, own)
    } else if own.isFree {
      unplaced.append((node, own, isCertain: !hasCheckedReadiness))
    } else {
      // The group of the operation has been released, or the operation has just started.
      nodes[node].obstacle = .starting(nil)
    }
  }

  private mutating func wait(_ node: Int, in place: StallPlace, _ operation: Operation) {
    nodes[node].place = place
    switch place {
    case .group(let group) where group.state == .pending: wait(node, for: beginning(of: group), .beginning)
    // A plain member uses no slot before it is ready.
    case .group where !(operation is AsyncOperation) && !operation.isReady:
      nodes[node].obstacle = PlainMemberGate.isHolding(operation) ? .starting(nil) : .notReady
    case .group: wait(node, for: slots(of: place), .slot)
    case .queue(let queue):
      look(into: queue)
      let own = operation as? AsyncOperation
      // Another thread may be about to notify Foundation that the operation is ready. The ledger is read before the
      // readiness, so that the readiness reflects any earlier notification.
      let isNotificationPending = own?.core.withLock { !$0.ledger.isSatisfied || $0.lifecycle.isCancelled } ?? false
      let isReady = own?.isReadyForFoundation ?? operation.isReady
      if isReady || isNotificationPending {
        wait(node, for: slots(of: place), .slot)
      } else {
        nodes[node].obstacle = .notReady
      }
    }
  }

  private mutating func visit(_ node: Int, _ place: StallPlace) {
    nodes[node].place = place
    if place.isSuspended {
      nodes[node].obstacle = .suspended(place)
    } else if place.limit == 0 {
      nodes[node].obstacle = .hasNoSlots(place)
    } else {
      let executing = place.limit == nil ? [] : place.executing
      if executing.count < place.limit ?? .max {
        nodes[node].obstacle = .starting(place)
      } else {
        // If the limit has been lowered, more operations than the limit may be executing.
        nodes[node].needed = executing.count - (place.limit ?? .max) + 1
        for operation in executing { wait(node, for: end(of: operation), .slotHolder) }
      }
    }
  }
}

extension OperationCore {
  /// A closure that returns the place of the operation, if known. The caller must call it after releasing the lock.
  fileprivate var stallPlace: () -> StallPlace? {
    let (supervisor, queue) = (supervisor, queue)
    return {
      if let group = supervisor?.supervisedGroup as? GroupOperation { return .group(group) }
      return queue.map { .queue($0) }
    }
  }
}
