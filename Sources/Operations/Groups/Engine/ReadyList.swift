import Foundation

/// The ready members of a group, by queue priority, and first in, first out within a priority. A member whose priority
/// is raised, or that is cancelled, is added once more elsewhere. The earlier entry then has no effect, because a
/// member starts once.
struct ReadyList {
  private var normal = ArrayDeque<AsyncOperation>()
  /// The members whose priority is not normal, by the raw value of the priority. Usually empty, and no list is.
  private var others: [Int: ArrayDeque<AsyncOperation>] = [:]
  private(set) var count = 0

  var isEmpty: Bool { count == 0 }

  /// The caller reads the operation's `queuePriority` without a lock, because a subclass can override it. If `isFirst` is
  /// true, the member goes before all others of its priority.
  mutating func append(_ operation: AsyncOperation, _ priority: Operation.QueuePriority, isFirst: Bool = false) {
    func add(to list: inout ArrayDeque<AsyncOperation>) {
      if isFirst { list.prepend([operation]) } else { list.append(operation) }
    }
    count += 1
    switch priority {
    case .normal: add(to: &normal)
    case .veryHigh, .high, .low, .veryLow: add(to: &others[priority.rawValue, default: ArrayDeque()])
    @unknown default: add(to: &normal)
    }
  }

  mutating func append(_ list: Self) {
    for operation in list.normal.all { normal.append(operation) }
    for (priority, list) in list.others {
      for operation in list.all { others[priority, default: ArrayDeque()].append(operation) }
    }
    count += list.count
  }

  /// Returns the first member, and the raw value of the priority with which it was added.
  mutating func popFirst() -> (operation: AsyncOperation, priority: Int)? {
    if isEmpty { return nil }
    count -= 1
    guard let highest = others.keys.max(), highest > Operation.QueuePriority.normal.rawValue || normal.isEmpty else {
      return normal.popFirst().map { ($0, Operation.QueuePriority.normal.rawValue) }
    }
    let operation = others[highest]?.popFirst()
    if others[highest]?.isEmpty == true { others[highest] = nil }
    return operation.map { ($0, highest) }
  }

  mutating func takeAll() -> [AsyncOperation] {
    var members: [AsyncOperation] = []
    while let member = popFirst()?.operation { members.append(member) }
    return members
  }
}
