import Foundation

/// Where operations get slots.
enum StallPlace {
  case queue(OperationQueue)
  case group(GroupOperation)

  var id: ObjectIdentifier {
    switch self {
    case .queue(let queue): ObjectIdentifier(queue)
    case .group(let group): ObjectIdentifier(group)
    }
  }

  /// Nil if it has been given none.
  var name: String? {
    switch self {
    case .group(let group): group.displayName
    case .queue(.main): "main"
    // What Foundation calls queues without a name says nothing to anybody.
    case .queue(let queue): queue.name.flatMap { $0.isEmpty || $0.hasPrefix("NSOperationQueue 0x") ? nil : $0 }
    }
  }

  /// As sentences speak of it.
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
    case .group(let group): group.isSuspended && !group.isWindingDown
    }
  }

  /// How many operations may execute at once. Nil is no limit.
  var limit: Int? {
    switch self {
    case .queue(let queue): queue.maxConcurrentOperationCount < 0 ? nil : queue.maxConcurrentOperationCount
    case .group(let group):
      group.maxConcurrentOperationCount < 0 || group.isWindingDown ? nil : group.maxConcurrentOperationCount
    }
  }

  /// Those that have a slot, as far as that can be seen: what a queue has handed out but not started yet cannot.
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
