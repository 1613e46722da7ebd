import Foundation

/// The unfinished members of a group, in the order they were added.
///
/// Each member has an index that never changes, so a removal costs at most a binary search. A list of more than 64
/// places has at most 16 times as many places as members, 8 bytes each.
struct MemberList {
  /// The members before ``firstIndex`` that remained when the list was last compacted, in the order of their indexes.
  private var early: [(index: Int, operation: Operation?)] = []
  /// The members from ``firstIndex`` on. Removed members are nil.
  private var slots: [Operation?] = []
  /// The index of the first slot.
  private var firstIndex = 0
  private(set) var count = 0

  /// The number of places that the list occupies, including vacant ones.
  var room: Int { early.count + slots.count }

  var operations: [Operation] { early.compactMap(\.operation) + slots.compactMap(\.self) }

  /// Whether the member with this index has not been removed.
  func contains(_ index: Int) -> Bool { self[index] != nil }

  subscript(index: Int) -> Operation? {
    if index < firstIndex { return earlyPosition(of: index).flatMap { early[$0].operation } }
    return slots.indices.contains(index - firstIndex) ? slots[index - firstIndex] : nil
  }

  /// Adds members.
  ///
  /// - Returns: The index of the first added member. The indices of the other members follow.
  mutating func append(_ operations: ArraySlice<Operation>) -> Int {
    let index = firstIndex + slots.count
    for operation in operations { slots.append(operation) }
    count += operations.count
    return index
  }

  /// Removes a member.
  ///
  /// - Returns: The member, which the caller releases. Nil if the member has been removed before.
  mutating func remove(at index: Int) -> Operation? {
    var operation: Operation?
    if index >= firstIndex {
      swap(&operation, &slots[index - firstIndex])
    } else if let position = earlyPosition(of: index) {
      swap(&operation, &early[position].operation)
    }
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

  /// Finds the position of an index in the early members with a binary search.
  private func earlyPosition(of index: Int) -> Int? {
    var (low, high) = (0, early.count)
    while low < high {
      let middle = (low + high) / 2
      if early[middle].index < index { low = middle + 1 } else { high = middle }
    }
    return low < early.count && early[low].index == index ? low : nil
  }
}
