import Foundation

/// The ready members of a group, ordered by queue priority and first in, first out within a priority.
///
/// Adding and taking a member are O(1).
struct ReadyList {
  private var urgent = ArrayDeque<Operation>()
  private var high = ArrayDeque<Operation>()
  private var normal = ArrayDeque<Operation>()
  private var low = ArrayDeque<Operation>()
  private var lowest = ArrayDeque<Operation>()
  private(set) var count = 0
  /// The number of members whose priority is not normal. Usually zero, and then only one list is checked.
  private var exceptions = 0

  var isEmpty: Bool { count == 0 }

  /// Adds a member.
  ///
  /// - Parameter priority: The operation's `queuePriority`. The caller reads it without a lock, because a subclass can
  ///   override it.
  mutating func append(_ operation: Operation, _ priority: Operation.QueuePriority) {
    count += 1
    if priority == .normal { return normal.append(operation) }
    exceptions += 1
    switch priority {
    case .veryHigh: urgent.append(operation)
    case .high: high.append(operation)
    case .low: low.append(operation)
    case .veryLow: lowest.append(operation)
    case .normal: fallthrough
    @unknown default:
      exceptions -= 1
      normal.append(operation)
    }
  }

  mutating func popFirst() -> Operation? {
    guard count > 0 else { return nil }
    count -= 1
    if exceptions == 0 { return normal.popFirst() }
    if let operation = urgent.popFirst() ?? high.popFirst() {
      exceptions -= 1
      return operation
    }
    if let operation = normal.popFirst() { return operation }
    exceptions -= 1
    return low.popFirst() ?? lowest.popFirst()
  }
}

/// A member that can be started.
struct ReadyMember {
  let operation: Operation
  let priority: Operation.QueuePriority

  init(_ operation: Operation) {
    self.operation = operation
    priority = operation.queuePriority
  }
}
