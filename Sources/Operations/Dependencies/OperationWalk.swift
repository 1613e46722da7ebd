import Foundation

/// Walks through the wait graph.
enum OperationWalk {
  /// Returns the operations and their direct and indirect dependencies that are free, each once, dependencies first.
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

  /// Returns `last` and the operations of the toolkit that it waits for, directly or indirectly, as far as they are
  /// free.
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
