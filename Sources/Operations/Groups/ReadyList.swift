import Foundation

/// The members of a group that can be started: by queue priority, and first come, first served within one.
///
/// Adding and taking cost the same however many there are.
struct ReadyList {
  private var lines = [Line](repeating: Line(), count: 5)
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ operation: Operation) {
    lines[ReadyList.line(of: operation.queuePriority)].append(operation)
    count += 1
  }

  /// The most urgent line is the first.
  private static func line(of priority: Operation.QueuePriority) -> Int {
    switch priority {
    case .veryHigh: 0
    case .high: 1
    case .low: 3
    case .veryLow: 4
    case .normal: 2
    @unknown default: 2
    }
  }

  mutating func popFirst() -> Operation? {
    guard count > 0 else { return nil }
    count -= 1
    for index in lines.indices {
      if let operation = lines[index].popFirst() { return operation }
    }
    return nil
  }

  private struct Line {
    private var operations: [Operation?] = []
    private var head = 0

    mutating func append(_ operation: Operation) { operations.append(operation) }

    mutating func popFirst() -> Operation? {
      guard head < operations.count else { return nil }
      // Moved out, not copied: counting the reference would fetch the operation into the cache under the engine's lock.
      var operation: Operation?
      swap(&operation, &operations[head])
      head += 1
      if head == operations.count || (head >= 64 && head * 2 >= operations.count) {
        // Half of it is empty: moving the rest to the front costs each operation one move.
        operations.removeFirst(head)
        head = 0
      }
      return operation
    }
  }
}
