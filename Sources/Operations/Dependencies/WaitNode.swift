import Foundation

/// A node of the wait graph: the end of an operation, or the start of a group. Members wait for the start of their
/// group.
struct WaitNode: Hashable {
  let operation: Operation
  /// Whether the node is the start of a group. Otherwise it is the end of the operation.
  let isStart: Bool

  init(_ operation: Operation) { self.init(operation, isStart: false) }

  private init(_ operation: Operation, isStart: Bool) {
    self.operation = operation
    self.isStart = isStart
  }

  static func == (left: Self, right: Self) -> Bool {
    left.operation === right.operation && left.isStart == right.isStart
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(ObjectIdentifier(operation))
    hasher.combine(isStart)
  }

  enum Kind {
    case dependency
    /// The end of a group waits for the ends of its members.
    case member
    /// The operation waits for the start of the group around it.
    case start
  }

  /// The nodes that a node waits for, and the edition of the ledger that they were read from.
  struct Wait {
    var dependencies: [WaitNode] = []
    var members: [WaitNode] = []
    var start: WaitNode?
    var edition: Int32 = 0

    var next: [WaitNode] { dependencies + members + (start.map { [$0] } ?? []) }

    var count: Int { dependencies.count + members.count + (start == nil ? 0 : 1) }

    subscript(index: Int) -> (node: WaitNode, kind: Kind) {
      if index < dependencies.count { return (dependencies[index], .dependency) }
      if index - dependencies.count < members.count { return (members[index - dependencies.count], .member) }
      return (start ?? dependencies[index], .start)
    }
  }

  /// The nodes that this node waits for.
  ///
  /// They are the ends of the dependencies, the ends of the members if the node is the end of a group, and the start of
  /// the group around the operation. A dependency that was added repeatedly is repeated.
  ///
  /// A cancelled operation waits at most for its members.
  var wait: Wait { wait(evenIfCancelled: false) }

  func wait(evenIfCancelled: Bool) -> Wait {
    guard let own = operation as? AsyncOperation else {
      let isWaiting = evenIfCancelled || !operation.isCancelled
      return Wait(dependencies: isWaiting ? operation.dependencies.map { WaitNode($0) } : [])
    }
    let (dependencies, edition, supervisor, isCancelled) = own.core.withLock { core in
      (core.ledger.dependencies.entries, core.ledger.edition, core.supervisor, core.lifecycle.isCancelled)
    }
    var wait = Wait(edition: edition)
    if !isCancelled || evenIfCancelled { wait.dependencies = dependencies.map { WaitNode($0.operation) } }
    if !isStart { wait.members = own.members.map { WaitNode($0) } }
    if !isCancelled, let group = supervisor?.supervisedGroup, group.state == .pending {
      wait.start = WaitNode(group, isStart: true)
    }
    return wait
  }

  /// Returns whether ``wait`` may have more than `limit` entries, without building them.
  func waitsForMore(than limit: Int) -> Bool {
    guard let own = operation as? AsyncOperation else { return false }
    let members = isStart ? 0 : own.memberCount
    return members + own.core.withLock { $0.ledger.dependencies.count } > limit
  }
}

/// Walks through the wait graph.
enum OperationWalk {
  /// Returns the operations and their free direct and indirect dependencies, each once, dependencies first.
  ///
  /// An operation that has been started, or is in a queue or a group, is not free. The walk skips it and its
  /// dependencies. The walk takes O(n + e) and does not recurse.
  static func withDependencies(_ operations: [Operation]) -> [Operation] {
    var seen: Set<ObjectIdentifier> = []
    var result: [Operation] = []
    var path: [(operation: Operation, next: ArraySlice<Operation>)] = []
    for operation in operations where seen.insert(ObjectIdentifier(operation)).inserted {
      path.append((operation, operation.dependencies[...]))
      while let top = path.indices.last {
        guard let next = path[top].next.popFirst() else {
          result.append(path.removeLast().operation)
          continue
        }
        if isFree(next), seen.insert(ObjectIdentifier(next)).inserted { path.append((next, next.dependencies[...])) }
      }
    }
    return result
  }

  /// Returns the free operations among `last` and each `AsyncOperation` that it waits for, directly or indirectly.
  ///
  /// The walk continues beyond operations that are not free, and into groups, because their members wait as well. It
  /// takes O(n + e) and does not recurse.
  static func freeGraph(endingIn last: AsyncOperation) -> [AsyncOperation] {
    var seen: Set<WaitNode> = [WaitNode(last)]
    var toVisit = [WaitNode(last)]
    var result: [AsyncOperation] = []
    while let node = toVisit.popLast() {
      if !node.isStart, let own = node.operation as? AsyncOperation, own.isFree { result.append(own) }
      // A cancelled operation does not wait, but another operation may wait for its dependencies.
      for next in node.wait(evenIfCancelled: true).next where !next.operation.isFinished && seen.insert(next).inserted {
        toVisit.append(next)
      }
    }
    return result.reversed()
  }

  private static func isFree(_ operation: Operation) -> Bool {
    if let own = operation as? AsyncOperation { return own.isFree }
    return operation.isFreePlainOperation
  }
}
