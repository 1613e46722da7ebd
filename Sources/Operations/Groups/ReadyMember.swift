import Foundation

/// A member that can be started.
struct ReadyMember {
  let operation: Operation
  let priority: Operation.QueuePriority

  init(_ operation: Operation) {
    self.operation = operation
    priority = operation.queuePriority
  }
}
