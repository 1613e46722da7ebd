/// Entries about operations, in the order they were added. A long list keeps an index after a few searches. The storage
/// never leaves its lock, because ThreadSanitizer does not detect that a copy of an array was released.
struct LedgerList<Entry: Identifiable<ObjectIdentifier>> {
  private struct Index {
    var searches = 0
    var positions: [ObjectIdentifier: [Int]] = [:]
    var holes = 0
  }

  private static var shortLength: Int { 32 }

  /// Nil where an entry was removed through the index.
  private var slots: [Entry?] = []
  /// At most one element. An array takes one word, every operation has two lists, and most lists need no index.
  private var index: [Index] = []

  var count: Int { slots.count - (index.isEmpty ? 0 : index[0].holes) }
  var isEmpty: Bool { count == 0 }
  // A closure, because a generic key path is created anew at each use.
  var entries: [Entry] { slots.compactMap { $0 } }

  var willGrow: Bool { slots.count >= 64 && slots.count == slots.capacity }

  private var isIndexed: Bool { !index.isEmpty && index[0].searches == 32 }

  mutating func append(_ entry: Entry) {
    if isIndexed { index[0].positions[entry.id, default: []].append(slots.count) }
    slots.append(entry)
  }

  mutating func remove(_ identity: ObjectIdentifier) -> [Entry] {
    if isIndexed { return removeByIndex(identity) }
    let isLong = slots.count > Self.shortLength
    var removed: [Entry] = []
    slots.removeAll { slot in
      guard slot?.id == identity, let slot else { return false }
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
    let positions = index[0].positions.removeValue(forKey: identity) ?? []
    let removed = positions.compactMap { slots[$0].take() }
    index[0].holes += removed.count
    if index[0].holes > count + Self.shortLength { compact() }
    return removed
  }

  mutating func compact(keeping isKept: (Entry) -> Bool = { _ in true }) {
    slots = slots.filter { slot in slot.map(isKept) ?? false }
    makeIndexIfInUse()
  }

  private mutating func makeIndexIfInUse() {
    guard isIndexed else { return }
    var positions: [ObjectIdentifier: [Int]] = [:]
    for (position, slot) in slots.enumerated() { if let slot { positions[slot.id, default: []].append(position) } }
    (index[0].positions, index[0].holes) = (positions, 0)
  }

  mutating func takeAll() -> [Entry?] {
    defer { self = LedgerList() }
    return slots
  }
}
