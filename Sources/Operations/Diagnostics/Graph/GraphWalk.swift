import Foundation

/// A walk that collects the operations of a graph: the given operations, their direct and indirect dependencies, and
/// the members of groups.
struct GraphWalk {
  private var operations: [Operation] = []
  private var nodes: [OperationGraph.Node] = []
  private var indices: [ObjectIdentifier: Int] = [:]
  /// The groups that are collected only because operations wait for their start. Their members are not collected.
  private var beginningsOnly: Set<Int> = []
  private var toVisit: [Int] = []

  mutating func nodes(from roots: [Operation]) -> [OperationGraph.Node] {
    for operation in roots { _ = index(of: operation) }
    var visited = 0
    while visited < toVisit.count {
      visit(toVisit[visited])
      visited += 1
    }
    return nodes
  }

  private mutating func index(of operation: Operation, beginningOnly: Bool = false) -> Int {
    if let index = indices[ObjectIdentifier(operation)] {
      // The graph needs more than the group's start, so its members are collected, too.
      if !beginningOnly, beginningsOnly.remove(index) != nil { toVisit.append(index) }
      return index
    }
    let index = nodes.count
    indices[ObjectIdentifier(operation)] = index
    operations.append(operation)
    nodes.append(OperationGraph.Node(index, operation))
    toVisit.append(index)
    if beginningOnly { beginningsOnly.insert(index) }
    return index
  }

  private mutating func visit(_ index: Int) {
    let operation = operations[index]
    if nodes[index].dependencies.isEmpty {
      // The list may contain a dependency twice.
      var seen: Set<Int> = []
      for dependency in operation.dependencies where !(dependency is PlainMemberGate) {
        let id = self.index(of: dependency)
        if seen.insert(id).inserted { nodes[index].dependencies.append(id) }
      }
    }
    guard let own = operation as? AsyncOperation else { return }
    if nodes[index].group == nil, let group = own.enclosing, group.state == .pending {
      nodes[index].group = self.index(of: group, beginningOnly: true)
    }
    if beginningsOnly.contains(index) { return }
    for member in own.shownMembers { nodes[self.index(of: member)].group = index }
  }
}

extension AsyncOperation {
  /// The operations that run inside this one.
  ///
  /// An operation that is not a group may run operations in an inner group. The members of the inner group then replace
  /// that group.
  var shownMembers: [Operation] {
    if self is GroupOperation { return members }
    return members.flatMap { ($0 as? AsyncOperation)?.members ?? [] }
  }

  /// The operation that this one runs inside, or nil. For a member of an inner group, the operation that runs the inner
  /// group.
  var enclosing: AsyncOperation? {
    guard let group = core.withLock({ $0.supervisor })?.supervisedGroup else { return nil }
    let outer = group.core.withLock { $0.supervisor as? InnerSupervisor }
    return outer?.supervisedGroup ?? group
  }
}

extension OperationGraph.Node {
  fileprivate init(_ id: Int, _ operation: Operation) {
    let own = operation as? AsyncOperation
    self.init(
      id: id,
      name: operation.displayName,
      state: State(of: operation),
      isGroup: own?.runsOthersInside ?? false
    )
  }
}

extension OperationGraph.Node.State {
  init(of operation: Operation) {
    if let own = operation as? AsyncOperation {
      let lifecycle = own.core.withLock { $0.lifecycle }
      self.init(state: own.state, isCancelled: lifecycle.isCancelled, hasFailed: !lifecycle.failures.isEmpty)
    } else {
      let isFinished = operation.isFinished
      let state = isFinished ? AsyncOperation.State.finished : operation.isExecuting ? .executing : .pending
      self.init(state: state, isCancelled: operation.isCancelled, hasFailed: false)
    }
  }

  private init(state: AsyncOperation.State, isCancelled: Bool, hasFailed: Bool) {
    switch state {
    case .finished where hasFailed: self = .failed
    case _ where isCancelled: self = .cancelled
    case .finished: self = .finished
    case .executing: self = .executing
    case .pending: self = .pending
    }
  }
}
