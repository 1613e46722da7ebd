/// A double-ended queue in an array. Adding and removing at the ends takes amortized constant time.
struct ArrayDeque<Element> {
  private var elements: [Element?] = []
  private var head = 0

  var count: Int { elements.count - head }
  var isEmpty: Bool { head == elements.count }
  var first: Element? { isEmpty ? nil : elements[head] }
  var last: Element? { isEmpty ? nil : elements[elements.count - 1] }
  /// None of the elements is nil. Releasing a lazy sequence of them would be slow.
  var all: ArraySlice<Element?> { elements[head...] }

  mutating func append(_ element: Element) { elements.append(element) }

  @discardableResult
  mutating func popFirst() -> Element? {
    guard head < elements.count else { return nil }
    // Moves the element out. A copy would retain the object and load it into the cache, usually while a lock is held.
    var element: Element?
    swap(&element, &elements[head])
    head += 1
    if head == elements.count || (head >= 64 && head * 2 >= elements.count) {
      // At least half of the array is empty, so this costs one move for each popped element.
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  /// Also removes the elements in front of the returned one.
  mutating func popFirst(where predicate: (Element) -> Bool) -> Element? {
    while let element = popFirst() { if predicate(element) { return element } }
    return nil
  }

  /// Also removes the elements behind the returned one.
  mutating func popLast(where predicate: (Element) -> Bool) -> Element? {
    while !isEmpty { if let element = elements.removeLast(), predicate(element) { return element } }
    return nil
  }

  mutating func removeAll(where shouldBeRemoved: (Element) -> Bool) {
    elements = elements[head...].filter { $0.map(shouldBeRemoved) == false }
    head = 0
  }
}

/// In ascending order.
extension ArrayDeque where Element: Comparable {
  mutating func insert(_ element: Element) {
    let index = self.index(of: element)
    if index > head || isEmpty { return elements.insert(element, at: index) }
    if head == 0 {
      // Leaves a gap in front for the next elements, because the elements move only when the gap is used up.
      head = count / 2 + 1
      elements.insert(contentsOf: repeatElement(nil, count: head), at: 0)
    }
    head -= 1
    elements[head] = element
  }

  func contains(_ element: Element) -> Bool { position(of: element) != nil }

  /// Moves the elements on the shorter side.
  mutating func remove(_ element: Element) {
    guard let index = position(of: element) else { return }
    if index - head > elements.count - index {
      elements.remove(at: index)
    } else {
      for position in stride(from: index, to: head, by: -1) { elements.swapAt(position, position - 1) }
      popFirst()
    }
  }

  private func position(of element: Element) -> Int? {
    let index = self.index(of: element)
    return index < elements.count && elements[index] == element ? index : nil
  }

  /// Returns the index of the first element that is not smaller, by a binary search.
  private func index(of element: Element) -> Int {
    if let last, last < element { return elements.count }
    var (low, high) = (head, elements.count)
    while low < high {
      let middle = (low + high) / 2
      if let other = elements[middle], other < element { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// A place in a wait queue: by priority, then by arrival.
struct ArrivalRank<Ticket: Comparable & Sendable>: Comparable, Sendable {
  var priority: Int
  let ticket: Ticket

  static func < (left: Self, right: Self) -> Bool {
    left.priority == right.priority ? left.ticket < right.ticket : left.priority > right.priority
  }
}
