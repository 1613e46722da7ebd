import Foundation

/// Ways through the graph of what operations wait for.
enum OperationWalk {
  /// The operations and whatever they wait for, directly or not, that is still free; each once, dependencies first.
  ///
  /// What has been started, or is in a queue or a group, is somebody else's, and so is what that waits for. O(n + e), and
  /// no recursion.
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

  /// The operations of the toolkit that `last` waits for, directly or not, and itself, as far as they are free.
  ///
  /// Looks beyond those that are not free, and into groups: their members wait, too. O(n + e), and no recursion.
  static func freeGraph(endingIn last: AsyncOperation) -> [AsyncOperation] {
    var seen: Set<ObjectIdentifier> = [ObjectIdentifier(last)]
    var toVisit: [Operation] = [last]
    var result: [AsyncOperation] = []
    while let operation = toVisit.popLast() {
      if let own = operation as? AsyncOperation, own.isFree { result.append(own) }
      for next in operation.waitedFor where !next.isFinished && seen.insert(ObjectIdentifier(next)).inserted {
        toVisit.append(next)
      }
    }
    return result.reversed()
  }

  private static func isFree(_ operation: Operation) -> Bool {
    if let own = operation as? AsyncOperation { return own.isFree }
    return !operation.isExecuting && !operation.isFinished
  }
}

extension Operation {
  /// What has to finish before this operation can: its dependencies; if it is a group, its members; and if it is in a
  /// group that has not started, what that waits for. A dependency that was named repeatedly is repeated.
  ///
  /// One that has been cancelled waits for its members at most.
  var waitedFor: [Operation] {
    guard let operation = self as? AsyncOperation else { return isCancelled ? [] : dependencies }
    let (dependencies, supervisor) = operation.core.withLock { core in
      core.lifecycle.isCancelled ? ([], nil) : (core.ledger.dependencies, core.supervisor)
    }
    var result = dependencies.map(\.operation) + operation.members
    var group = supervisor?.supervisedGroup
    while let outer = group, outer.state == .pending, !outer.isCancelled {
      let (dependencies, supervisor) = outer.core.withLock { ($0.ledger.dependencies, $0.supervisor) }
      result += dependencies.map(\.operation)
      group = supervisor?.supervisedGroup
    }
    return result
  }
}
