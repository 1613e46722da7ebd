/// Elements in the order they were added. Each has a number that never changes, so a removal costs at most a binary search.
/// At most 15 of 16 places are vacant, or 64.
struct NumberedList<Element> {
  /// In the order of the numbers. Removed elements are nil, until the list is compacted.
  private var places: [(number: Int, element: Element?)] = []
  private(set) var nextNumber = 0
  private(set) var count = 0

  var room: Int { places.count }

  // A closure, because a generic key path is created anew at each use.
  var elements: [Element] { places.compactMap { $0.element } }

  func contains(_ number: Int) -> Bool { position(of: number).map { places[$0].element != nil } ?? false }

  /// - Returns: The number of the element.
  @discardableResult
  mutating func append(_ element: Element) -> Int {
    places.append((nextNumber, element))
    nextNumber += 1
    count += 1
    return nextNumber - 1
  }

  /// Returns a number whose element may be inserted later.
  mutating func skip() -> Int {
    nextNumber += 1
    return nextNumber - 1
  }

  /// Inserts the element of a skipped number, in O(n).
  mutating func insert(_ element: Element, at number: Int) {
    places.insert((number, element), at: firstPosition(from: number))
    count += 1
  }

  /// - Returns: The element, which the caller releases. Nil if it has been removed before.
  mutating func remove(_ number: Int) -> Element? {
    guard let element = position(of: number).flatMap({ places[$0].element.take() }) else { return nil }
    count -= 1
    // At most one of 16 places is in use, so each removal costs a fraction of a move. A new array gives back the room.
    if room > 64, count * 16 <= room { places = places.filter { $0.element != nil } }
    return element
  }

  mutating func removeAll() -> [Element] {
    count = 0
    return exchange(&places, with: []).compactMap { $0.element }
  }

  private func position(of number: Int) -> Int? {
    // Usually no place is missing between those that were added since the list was last compacted.
    let expected = places.count - (nextNumber - number)
    if places.indices.contains(expected), places[expected].number == number { return expected }
    let position = firstPosition(from: number)
    return position < places.count && places[position].number == number ? position : nil
  }

  private func firstPosition(from number: Int) -> Int {
    var (low, high) = (0, places.count)
    while low < high {
      let middle = (low + high) / 2
      if places[middle].number < number { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
