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
