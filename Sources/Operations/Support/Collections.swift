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

extension Dictionary {
  var hasMuchRoom: Bool { capacity >= 64 && count * 8 <= capacity }

  /// Shrinks the storage if most of it is unused, in amortized O(1). A dictionary never shrinks by itself.
  mutating func giveBackRoom() {
    guard hasMuchRoom else { return }
    var smaller = Self(minimumCapacity: count * 2)
    for (key, value) in self { smaller[key] = value }
    self = smaller
  }
}

extension Array {
  /// Returns one of consecutive elements that have the same key. The last and the first element count as consecutive.
  func withoutRepeats<Key: Equatable>(_ key: (Element) -> Key) -> [Element] {
    // Pairs each element with the one before it.
    count == 1 ? self : zip(self, suffix(1) + self).filter { key($0) != key($1) }.map { $0.0 }
  }
}

/// Returns the items that a depth-first walk reaches, each after those to which it leads, without recursion.
func postorder<Item>(from roots: [Item], isNew: (Item) -> Bool, next: (Item) -> [Item]) -> [Item] {
  var left: [Item] = []
  for root in roots where isNew(root) {
    var path = [(item: root, next: next(root)[...])]
    while let last = path.indices.last {
      if let item = path[last].next.popFirst() {
        if isNew(item) { path.append((item, next(item)[...])) }
      } else {
        left.append(path.removeLast().item)
      }
    }
  }
  return left
}

/// Elements at indices that never change. The indices of removed elements are used again.
struct SlotList<Element> {
  // In vacant slots, because accessing an optional in place would copy it.
  private let vacant: Element
  private var slots: [Element] = []
  private var vacantIndices: [Int] = []

  init(vacant: Element) { self.vacant = vacant }

  var count: Int { slots.count - vacantIndices.count }
  var isEmpty: Bool { count == 0 }
  var indices: Range<Int> { slots.indices }
  var nextIndex: Int { vacantIndices.last ?? slots.count }

  subscript(index: Int) -> Element {
    @inline(__always) _read { yield slots[index] }
    @inline(__always) _modify { yield &slots[index] }
  }

  mutating func insert(_ element: Element) {
    if let index = vacantIndices.popLast() { slots[index] = element } else { slots.append(element) }
  }

  mutating func remove(_ index: Int) {
    slots[index] = vacant
    vacantIndices.append(index)
    // An array never shrinks by itself.
    if isEmpty { self = Self(vacant: vacant) }
  }
}
