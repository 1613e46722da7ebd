import Foundation

/// The unfinished members of a group, in the order they came.
///
/// Each has an index that stays its own, so that taking one out costs the same however many there are. What has been
/// taken out at the front is given back; a gap in the middle costs a word until then.
struct MemberList {
  private var slots: [Operation?] = []
  private var firstIndex = 0
  /// How many slots at the front are empty.
  private var gap = 0
  private(set) var count = 0

  var operations: [Operation] { slots.compactMap(\.self) }

  /// Whether the member of this index has not been taken out.
  func contains(_ index: Int) -> Bool {
    slots.indices.contains(index - firstIndex) && slots[index - firstIndex] != nil
  }

  /// - Returns: The index of the first; the others follow.
  mutating func append(_ operations: ArraySlice<Operation>) -> Int {
    let index = firstIndex + slots.count
    for operation in operations { slots.append(operation) }
    count += operations.count
    return index
  }

  /// - Returns: The member, for the caller to let go of.
  mutating func remove(at index: Int) -> Operation? {
    let position = index - firstIndex
    var operation: Operation?
    swap(&operation, &slots[position])
    if operation == nil { return nil }
    count -= 1
    if position == gap { trim() }
    return operation
  }

  /// Once half of the list is a gap at the front, moving the rest costs every member one move.
  private mutating func trim() {
    while gap < slots.count, slots[gap] == nil { gap += 1 }
    guard gap == slots.count || (gap >= 64 && gap * 2 >= slots.count) else { return }
    slots.removeFirst(gap)
    firstIndex += gap
    gap = 0
  }
}
