import Foundation

/// The unfinished members of a group, in the order they were added. Each has an index that never changes, so a removal
/// costs at most a binary search. At most 15 of 16 places are vacant, or 64.
struct MemberList {
  /// In the order of the indices. Removed members are nil, until the list is compacted.
  private var places: [(index: Int, operation: AsyncOperation?)] = []
  private var nextIndex = 0
  private(set) var count = 0

  var room: Int { places.count }

  var operations: [AsyncOperation] { places.compactMap(\.operation) }

  func contains(_ index: Int) -> Bool { position(of: index).map { places[$0].operation != nil } ?? false }

  /// - Returns: The index of the first added member. The indices of the other members follow.
  mutating func append(_ operations: [AsyncOperation]) -> Int {
    let first = nextIndex
    for operation in operations {
      places.append((nextIndex, operation))
      nextIndex += 1
    }
    count += operations.count
    return first
  }

  /// - Returns: The member, which the caller releases. Nil if it has been removed before.
  mutating func remove(at index: Int) -> AsyncOperation? {
    guard let operation = position(of: index).flatMap({ places[$0].operation.take() }) else { return nil }
    count -= 1
    // At most one of 16 places is in use, so each removal costs a fraction of a move. A new array gives back the room.
    if room > 64, count * 16 <= room { places = places.filter { $0.operation != nil } }
    return operation
  }

  private func position(of index: Int) -> Int? {
    // No place is missing between those that were added since the list was last compacted.
    let expected = places.count - (nextIndex - index)
    if places.indices.contains(expected), places[expected].index == index { return expected }
    var (low, high) = (0, places.count)
    while low < high {
      let middle = (low + high) / 2
      if places[middle].index < index { low = middle + 1 } else { high = middle }
    }
    return low < places.count && places[low].index == index ? low : nil
  }
}
