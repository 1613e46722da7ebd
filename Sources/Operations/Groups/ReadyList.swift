import Foundation

/// The members of a group that can be started: by queue priority, and first come, first served within one.
///
/// Adding and taking cost the same however many there are.
struct ReadyList {
  private var urgent = ArrayDeque<Operation>()
  private var high = ArrayDeque<Operation>()
  private var normal = ArrayDeque<Operation>()
  private var low = ArrayDeque<Operation>()
  private var lowest = ArrayDeque<Operation>()
  private(set) var count = 0
  /// How many are not of normal priority: mostly none, and then the other lines need not be looked at.
  private var exceptions = 0

  var isEmpty: Bool { count == 0 }

  /// - Parameter priority: The operation's, which is asked for before, without a lock: it can be overridden.
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
