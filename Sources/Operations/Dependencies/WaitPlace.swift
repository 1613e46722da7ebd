import Foundation

/// The queue or the group that provides the slots of an operation.
enum WaitPlace {
  case queue(OperationQueue)
  case group(GroupOperation)

  var id: ObjectIdentifier {
    switch self {
    case .queue(let queue): ObjectIdentifier(queue)
    case .group(let group): ObjectIdentifier(group)
    }
  }

  var group: GroupOperation? { if case .group(let group) = self { group } else { nil } }

  var name: String? {
    switch self {
    case .group(let group): group.displayName
    case .queue(let queue): queue.givenName
    }
  }

  var description: String {
    switch self {
    case .group(let group): "the group \(group.shownName)"
    case .queue(.main): "the main queue"
    case .queue: name.map { "the queue “\($0.inOneLine)”" } ?? "its queue"
    }
  }

  /// The limit is negative if any number of operations can execute at once.
  var slots: (isSuspended: Bool, limit: Int, operations: [Operation]) {
    switch self {
    case .queue(let queue): (queue.isSuspended, queue.maxConcurrentOperationCount, queue.operations)
    case .group(let group) where group.engine.isDraining: (false, -1, group.members)
    case .group(let group): (group.isSuspended, group.maxConcurrentOperationCount, group.members)
    }
  }

  var isFull: Bool {
    let (isSuspended, limit, operations) = slots
    return isSuspended || limit >= 0 && operations.count(where: \.usesSlot) >= limit
  }
}

extension AsyncOperation {
  /// Nil if the operation is in no group, and does not know its queue.
  final var ownPlace: WaitPlace? {
    let (outer, queue) = core.withLock { ($0.outer, $0.queue) }
    return (outer as? GroupOperation).map { .group($0) } ?? queue.map { .queue($0) }
  }
}

extension Operation {
  /// Foundation does not expose the operations that a queue has taken but not started.
  var usesSlot: Bool {
    if isFinished { return false }
    guard let own = self as? AsyncOperation else { return isExecuting }
    return own.core.withLock { $0.holdsSlot }
  }
}
