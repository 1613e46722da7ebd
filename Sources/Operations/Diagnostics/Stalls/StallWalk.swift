import Foundation

/// Collects the nodes of a stall report. It never notifies Foundation, and grants or releases no key or slot.
struct StallWalk {
  private(set) var nodes: [StallNode] = []
  private var snapshot = WaitSnapshot()
  private var slots: [ObjectIdentifier: Int] = [:]
  private var keys: [KeyTable.Obstacle: (node: Int, users: [KeyClaimant])] = [:]
  private var resources: [Int: StallNode.Subject] = [:]
  /// The places of operations, some of which do not store theirs. A released operation's address could be reused.
  private var places: [ObjectIdentifier: (operation: Operation, place: StallPlace)] = [:]
  private var searched: [ObjectIdentifier: StallPlace] = [:]
  /// The operations whose place is unknown. A later part of the walk may still find the place.
  private var unplaced: [(node: Int, operation: Operation)] = []

  init(from roots: [Operation], lookingInto queues: [OperationQueue]) {
    for queue in queues + [.main] { look(into: .queue(queue)) }
    for operation in roots { _ = snapshot.index(of: operation) }
    repeat {
      visitAll()
      for (node, operation) in exchange(&unplaced, with: []) {
        if let (_, place) = places[ObjectIdentifier(operation)] {
          wait(node, in: place, operation)
        } else if nodes[node].waits.isEmpty {
          let own = operation as? AsyncOperation
          let isCertain = own?.core.withLock { $0.bridge.record == .unread && !$0.lifecycle.isCancelled } ?? false
          nodes[node].reason = .notEnqueued(operation, isCertain: isCertain)
        }
      }
    } while nodes.count < snapshot.nodes.count
  }

  private mutating func visitAll() {
    while nodes.count < snapshot.nodes.count {
      let node = nodes.count
      if let resource = resources.removeValue(forKey: node) {
        nodes.append(StallNode(subject: resource))
      } else if let operation = snapshot.nodes[node].operation {
        _ = snapshot.read(node)
        let read = snapshot.nodes[node]
        nodes.append(StallNode(subject: .operation(operation, isStart: snapshot.isStart(node))))
        (nodes[node].waits, nodes[node].stamp) = (read.waits, read.stamp)
      }
      visit(node)
    }
  }

  /// Records the places of the operations in a queue or a group, and in the groups among them, at any depth.
  private mutating func look(into place: StallPlace) {
    var toDo = [place]
    while let place = toDo.popLast() {
      guard searched.updateValue(place, forKey: place.id) == nil else { continue }
      for operation in place.slots.operations {
        places[ObjectIdentifier(operation)] = (operation, place)
        if let group = (operation as? AsyncOperation)?.groupInside { toDo.append(.group(group)) }
      }
    }
  }

  private mutating func wait(_ node: Int, for other: Int, _ kind: WaitSnapshot.WaitKind) {
    nodes[node].waits.append((other, kind))
  }

  private mutating func add(_ resource: StallNode.Subject) -> Int {
    let node = snapshot.addResource()
    resources[node] = resource
    return node
  }

  private mutating func slots(of place: StallPlace) -> Int {
    if let node = slots[place.id] { return node }
    let node = add(.slots(of: place))
    slots[place.id] = node
    return node
  }

  private mutating func visit(_ node: Int) {
    switch nodes[node].subject {
    case .operation(let operation, _): visit(node, operation)
    case .slots(let place): visit(node, place)
    case .task(_, waitsAs: nil): nodes[node].reason = .running
    case .task(_, waitsAs: let claimant): waitForKeys(node, claimant)
    case .key(let obstacle):
      for user in keys[obstacle]?.users ?? [] {
        if let operation = user.operation {
          wait(node, for: snapshot.index(of: operation), .user)
        } else if let name = user.name {
          wait(node, for: add(.task(name: name, waitsAs: obstacle.areHolders ? nil : user)), .user)
        }
      }
      // The key has been released meanwhile.
      if nodes[node].waits.isEmpty { nodes[node].reason = .starting }
    }
  }

  private mutating func visit(_ node: Int, _ operation: Operation) {
    nodes[node].place = operation.stallPlace ?? places[ObjectIdentifier(operation)]?.place
    let stamp = nodes[node].stamp
    guard let own = operation as? AsyncOperation else {
      switch stamp.phase {
      case .pending: waitForSlot(node, operation)
      case .executing: nodes[node].reason = .executing(operation, for: nil, isCancelled: stamp.isCancelled)
      default: nodes[node].reason = .ending
      }
      return
    }
    let (time, pause, condition) = own.core.withLock { ($0.startTime, $0.extras?.pause, $0.extras?.condition) }
    if let group = own.groupInside { look(into: .group(group)) }
    let elapsed = stamp.phase.isPending ? nil : time?.elapsed
    nodes[node].elapsed = elapsed
    if !nodes[node].waits.isEmpty { return }
    switch stamp.phase {
    // A cancelled operation waits only for a slot, in which it finishes.
    case .pending where stamp.isCancelled: waitForSlot(node, own)
    case .pending(let wait), .suspended(let wait), .paused(let wait):
      switch wait {
      case .groupStart, .dependencies, .slot: waitForSlot(node, own)
      case .turn: waitForKeys(node, own.core.withLock { $0.turn })
      case .conditions: nodes[node].reason = condition.map { .condition($0, for: elapsed) } ?? .starting
      case .delay:
        nodes[node].reason = pause.map { .backingOff(before: $0.next, remaining: $0.remaining()) } ?? .starting
      }
    case .preparing: nodes[node].reason = .starting
    case .executing:
      if let group = own as? GroupOperation {
        let isOpen = group.engine.state.withLock { $0.schedule.isOpen }
        nodes[node].reason = isOpen ? .waitsForMembers(isSuspended: group.isSuspended) : .ending
      } else if !own.represented.isExecuting, !own.represented.isReady {
        nodes[node].reason = .notReady(own.represented)
      } else if let keys = own.awaitedKeys.first {
        waitForKeys(node, keys)
      } else {
        nodes[node].reason = .executing(own, for: elapsed, isCancelled: stamp.isCancelled)
      }
    case .skipped, .ending, .finished: nodes[node].reason = .ending
    }
  }

  private mutating func waitForKeys(_ node: Int, _ claimant: KeyClaimant?) {
    nodes[node].reason = .starting
    guard let claimant else { return }
    for (obstacle, limit, users) in claimant.obstacles(withoutUsersOf: { keys[$0] != nil }) {
      if keys[obstacle] == nil { keys[obstacle] = (add(.key(obstacle)), users) }
      guard let key = keys[obstacle], key.users.first !== claimant else { continue }
      wait(node, for: key.node, .key(limit: limit))
    }
    if nodes[node].waits.isEmpty, let restraint = claimant.restraint { nodes[node].reason = .restrained(by: restraint) }
  }

  private mutating func waitForSlot(_ node: Int, _ operation: Operation) {
    if let place = nodes[node].place {
      wait(node, in: place, operation)
    } else if (operation as? AsyncOperation)?.isFree ?? true {
      unplaced.append((node, operation))
    } else {
      // The group of the operation has been released, or the operation has just started.
      nodes[node].reason = .starting
    }
  }

  private mutating func wait(_ node: Int, in place: StallPlace, _ operation: Operation) {
    nodes[node].place = place
    if case .group(let group) = place, group.state == .pending {
      return wait(node, for: snapshot.index(of: group, isStart: true), .groupStart)
    }
    // A plain operation may wait for its dependencies.
    if !nodes[node].waits.isEmpty { return }
    switch place {
    case .group: wait(node, for: slots(of: place), .slot)
    case .queue:
      look(into: place)
      // The ledger is read before the readiness, which therefore reflects any earlier notification of Foundation.
      let own = operation as? AsyncOperation
      let isNotificationPending = own?.core.withLock { !$0.isSatisfied || $0.lifecycle.isCancelled } ?? false
      let isReady = own?.isReadyForFoundation ?? operation.isReady
      if isReady || isNotificationPending {
        wait(node, for: slots(of: place), .slot)
      } else {
        nodes[node].reason = .notReady(operation)
      }
    }
  }

  private mutating func visit(_ node: Int, _ place: StallPlace) {
    let (isSuspended, limit, operations) = place.slots
    let users = operations.filter(\.usesSlot)
    if isSuspended {
      nodes[node].reason = .suspended(place)
    } else if limit == 0 {
      nodes[node].reason = .hasNoSlots(place)
    } else if limit < 0 || users.count < limit {
      nodes[node].reason = .starting(in: place)
    } else {
      // If the limit has been lowered, more operations than the limit may be executing.
      nodes[node].needed = users.count - limit + 1
      for user in users { wait(node, for: snapshot.index(of: user), .user) }
    }
  }
}

extension Operation {
  fileprivate var stallPlace: StallPlace? {
    guard let own = self as? AsyncOperation else { return nil }
    let (outer, queue) = own.core.withLock { ($0.outer, $0.queue) }
    if let group = outer as? GroupOperation { return .group(group) }
    return queue.map { .queue($0) }
  }

  /// Foundation does not expose the operations that a queue has taken but not started.
  fileprivate var usesSlot: Bool {
    if isFinished { return false }
    guard let own = self as? AsyncOperation else { return isExecuting }
    return own.core.withLock { $0.holdsSlot }
  }
}
