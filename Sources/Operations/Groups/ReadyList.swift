import Foundation

/// The members of a group that can be started: by queue priority, and first come, first served within one.
///
/// Adding and taking cost the same however many there are.
struct ReadyList {
  /// From the most urgent down. Any other raw value counts as the nearest of these towards normal, as in Foundation.
  private static let priorities: [Operation.QueuePriority] = [.veryHigh, .high, .normal, .low, .veryLow]

  private var lines = [Line](repeating: Line(), count: priorities.count)
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  mutating func append(_ operation: Operation) {
    let index = ReadyList.priorities.firstIndex { operation.queuePriority.rawValue >= $0.rawValue }
    lines[index ?? ReadyList.priorities.count - 1].append(operation)
    count += 1
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
      defer {
        operations[head] = nil
        head += 1
        // Half of it is empty: moving the rest to the front costs each operation one move.
        if head == operations.count {
          operations.removeAll(keepingCapacity: head <= 1024)
          head = 0
        } else if head >= 64, head * 2 >= operations.count {
          operations.removeFirst(head)
          head = 0
        }
      }
      return operations[head]
    }
  }
}
