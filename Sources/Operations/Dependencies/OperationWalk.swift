import Foundation

/// Ways through the graph of what operations wait for.
enum OperationWalk {
  /// The operations and whatever they wait for, directly or not, that is still free; each once, dependencies first.
  ///
  /// What has been started, or is in a queue or a group, is somebody else's, and so is what that waits for. O(n + e),
  /// and no recursion.
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
    var seen: Set<WaitNode> = [WaitNode(last)]
    var toVisit = [WaitNode(last)]
    var result: [AsyncOperation] = []
    while let node = toVisit.popLast() {
      if !node.isStart, let own = node.operation as? AsyncOperation, own.isFree { result.append(own) }
      // One that has been cancelled does not wait, but somebody may wait for what it waited for.
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

extension Operation {
  /// Whether a plain Foundation operation may be in no queue or group yet, as far as that can be known.
  var isFreePlainOperation: Bool {
    !isExecuting && !isFinished && !(self is PlainMemberGate) && !PlainMemberGate.holds(self)
  }
}
