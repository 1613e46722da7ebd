import Foundation

/// The unfinished members of a group, in the order they were added. Each has an index that never changes, so a removal
/// costs at most a binary search. At most 15 of 16 places are vacant, or 64.
struct MemberList {
  /// The members before ``firstIndex``, as they were when the list was last compacted.
  private var early: [(index: Int, operation: AsyncOperation?)] = []
  /// The members from ``firstIndex`` on. Removed members are nil.
  private var slots: [AsyncOperation?] = []
  private var firstIndex = 0
  private(set) var count = 0

  var room: Int { early.count + slots.count }

  var operations: [AsyncOperation] { early.compactMap(\.operation) + slots.compactMap(\.self) }

  func contains(_ index: Int) -> Bool { self[index] != nil }

  subscript(index: Int) -> AsyncOperation? {
    if index < firstIndex { return earlyPosition(of: index).flatMap { early[$0].operation } }
    return slots.indices.contains(index - firstIndex) ? slots[index - firstIndex] : nil
  }

  /// - Returns: The index of the first added member. The indices of the other members follow.
  mutating func append(_ operations: [AsyncOperation]) -> Int {
    let index = firstIndex + slots.count
    for operation in operations { slots.append(operation) }
    count += operations.count
    return index
  }

  /// - Returns: The member, which the caller releases. Nil if it has been removed before.
  mutating func remove(at index: Int) -> AsyncOperation? {
    let isEarly = index < firstIndex
    let operation =
      isEarly ? earlyPosition(of: index).flatMap { early[$0].operation.take() } : slots[index - firstIndex].take()
    if operation == nil { return nil }
    count -= 1
    if room > 64, count * 16 <= room { compact() }
    return operation
  }

  /// Removes the vacant places. At most one of 16 places is in use, so each removal costs a fraction of a move.
  private mutating func compact() {
    early.removeAll { $0.operation == nil }
    for (position, operation) in slots.enumerated() where operation != nil {
      early.append((firstIndex + position, operation))
    }
    firstIndex += slots.count
    slots = []
  }

  private func earlyPosition(of index: Int) -> Int? {
    var (low, high) = (0, early.count)
    while low < high {
      let middle = (low + high) / 2
      if early[middle].index < index { low = middle + 1 } else { high = middle }
    }
    return low < early.count && early[low].index == index ? low : nil
  }
}
