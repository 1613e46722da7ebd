import Foundation

/// The queue or the group that provides the slots of an operation.
enum StallPlace {
  case queue(OperationQueue)
  case group(GroupOperation)

  var id: ObjectIdentifier {
    switch self {
    case .queue(let queue): ObjectIdentifier(queue)
    case .group(let group): ObjectIdentifier(group)
    }
  }

  /// The name of the place, or nil for a queue without a name.
  var name: String? {
    switch self {
    case .group(let group): group.displayName
    case .queue(.main): "main"
    // Foundation's default name for a queue contains nothing but its class and address.
    case .queue(let queue): queue.name.flatMap { $0.isEmpty || $0.hasPrefix("NSOperationQueue 0x") ? nil : $0 }
    }
  }

  /// The place as it appears in a sentence.
  var description: String {
    switch self {
    case .group(let group): "the group \(group.shownName)"
    case .queue(.main): "the main queue"
    case .queue: name.map { "the queue “\($0.inOneLine)”" } ?? "its queue"
    }
  }

  var isSuspended: Bool {
    switch self {
    case .queue(let queue): queue.isSuspended
    case .group(let group): group.isSuspended && !group.isDraining
    }
  }

  /// The number of operations that can execute at once, or nil if there is no limit.
  var limit: Int? {
    switch self {
    case .queue(let queue): queue.maxConcurrentOperationCount < 0 ? nil : queue.maxConcurrentOperationCount
    case .group(let group):
      group.maxConcurrentOperationCount < 0 || group.isDraining ? nil : group.maxConcurrentOperationCount
    }
  }

  /// The operations that use a slot. An operation that a queue has taken but not started is not visible, so it is
  /// missing.
  var executing: [Operation] {
    let operations =
      switch self {
      case .queue(let queue): queue.operations
      case .group(let group): group.operations
      }
    return operations.filter { operation in
      if operation.isFinished { return false }
      guard let own = operation as? AsyncOperation else { return operation.isExecuting }
      return own.core.withLock { $0.lifecycle.phase != .pending && $0.extras?.pause?.keepsSlot ?? true }
    }
  }
}
