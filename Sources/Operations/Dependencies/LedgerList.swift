/// An entry of a ``LedgerList``.
protocol LedgerEntry {
  /// The operation that the entry is about.
  var identity: ObjectIdentifier { get }
}

/// Entries about operations, in the order they were added.
///
/// Removing one does not cost more the longer the list is: after a few searches a long list keeps an index. The storage
/// does not leave the lock around it: the thread sanitizer does not see that a copy of an array has been released.
struct LedgerList<Entry: LedgerEntry> {
  /// The searches of a long list, and, when there have been enough, where its entries are.
  private struct Index {
    var searches = 0
    var positions: [ObjectIdentifier: [Int]] = [:]
    /// How many slots are empty.
    var holes = 0

    var isInUse: Bool { searches == 32 }
  }

  private static var shortLength: Int { 32 }

  /// Nil where an entry has been removed by way of the index.
  private var slots: [Entry?] = []
  /// One at most. Every operation has two of these lists, and most never need an index: so it takes a word.
  private var index: [Index] = []

  var count: Int { slots.count - (index.isEmpty ? 0 : index[0].holes) }
  var isEmpty: Bool { count == 0 }
  var entries: [Entry] { slots.compactMap(\.self) }

  /// Whether the next entry makes a long list allocate.
  var willGrow: Bool { slots.count >= 64 && slots.count == slots.capacity }

  private var isIndexed: Bool { !index.isEmpty && index[0].isInUse }

  mutating func append(_ entry: Entry) {
    if isIndexed { index[0].positions[entry.identity, default: []].append(slots.count) }
    slots.append(entry)
  }

  /// Removes the entries about an operation.
  mutating func remove(_ identity: ObjectIdentifier) -> [Entry] {
    if isIndexed { return removeByIndex(identity) }
    let isLong = slots.count > Self.shortLength
    var removed: [Entry] = []
    slots.removeAll { slot in
      // Compared first: a copy of a weak reference costs more.
      guard slot?.identity == identity, let slot else { return false }
      removed.append(slot)
      return true
    }
    if isLong {
      if index.isEmpty { index = [Index()] }
      index[0].searches += 1
      makeIndexIfInUse()
    }
    return removed
  }

  private mutating func removeByIndex(_ identity: ObjectIdentifier) -> [Entry] {
    var removed: [Entry] = []
    for position in index[0].positions.removeValue(forKey: identity) ?? [] {
      if let entry = slots[position] { removed.append(entry) }
      slots[position] = nil
    }
    index[0].holes += removed.count
    if index[0].holes > count + Self.shortLength { compact() }
    return removed
  }

  /// Gives the room of removed entries back, and removes those that `isKept` says no to.
  mutating func compact(keeping isKept: (Entry) -> Bool = { _ in true }) {
    slots = slots.filter { slot in slot.map(isKept) ?? false }
    makeIndexIfInUse()
  }

  private mutating func makeIndexIfInUse() {
    guard isIndexed else { return }
    var positions: [ObjectIdentifier: [Int]] = [:]
    for (position, slot) in slots.enumerated() {
      if let slot { positions[slot.identity, default: []].append(position) }
    }
    (index[0].positions, index[0].holes) = (positions, 0)
  }

  mutating func takeAll() -> [Entry?] {
    defer { self = LedgerList() }
    return slots
  }
}
