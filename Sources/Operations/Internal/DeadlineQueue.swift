/// What is to be done at certain times: in order of time, and of asking among those of one time.
package struct DeadlineQueue<Deadline: Comparable & Sendable, Element> {
  /// Where an element is found again.
  package struct Place: Sendable {
    package let deadline: Deadline
    let number: Int
  }

  private var items: [(place: Place, element: Element)] = []
  private var numbersSoFar = 0

  package init() {}

  package var count: Int { items.count }
  package var earliest: Deadline? { items.first?.place.deadline }

  /// A place behind those who have asked for the same time.
  package mutating func place(at deadline: Deadline) -> Place {
    numbersSoFar += 1
    return Place(deadline: deadline, number: numbersSoFar)
  }

  package mutating func add(_ element: Element, at place: Place) {
    items.insert((place, element), at: index(of: place))
  }

  package mutating func remove(_ place: Place) -> Element? {
    let index = index(of: place)
    guard index < items.count, items[index].place.number == place.number else { return nil }
    return items.remove(at: index).element
  }

  /// Takes out the first, if it is due at `time`.
  package mutating func popFirst(dueAt time: Deadline) -> (deadline: Deadline, element: Element)? {
    guard let first = items.first, first.place.deadline <= time else { return nil }
    items.removeFirst()
    return (first.place.deadline, first.element)
  }

  /// Takes out all that are due at `time`.
  package mutating func popAll(dueAt time: Deadline) -> [Element] {
    let count = items.firstIndex { $0.place.deadline > time } ?? items.count
    defer { items.removeFirst(count) }
    return items[..<count].map(\.element)
  }

  package mutating func removeAll() -> [Element] {
    defer { items = [] }
    return items.map(\.element)
  }

  private func index(of place: Place) -> Int {
    var (low, high) = (0, items.count)
    while low < high {
      let middle = (low + high) / 2
      let other = items[middle].place
      if (other.deadline, other.number) < (place.deadline, place.number) { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
