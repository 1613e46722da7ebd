@testable import Operations

extension ExclusivityDomain {
  /// Whether the domain retains nothing.
  var isUnused: Bool {
    sharedRuns.withLock { $0.isEmpty }
      && KeyRegistry.withTable { table in !table.useIndices.keys.contains { $0.domain === self } }
  }
}

extension KeyTable {
  /// Whether the table is empty and has no spare capacity.
  var isEmpty: Bool { entries.indices.isEmpty && uses.indices.isEmpty && useIndices.isEmpty && !useIndices.hasMuchRoom }
}

/// A claimant of a table of keys that is tested as a value.
struct TestClaimant: SlotUser, Hashable, ExpressibleByStringLiteral {
  /// The free slots of a group. The test copies them in and out if it copies the table.
  final class Slots: Sendable {
    private let free: Locked<Int>

    init(_ count: Int) { free = Locked(count) }

    var count: Int {
      get { free.withLock { $0 } }
      set { free.withLock { $0 = newValue } }
    }
  }

  let name: String
  var slots: Slots?

  init(_ name: String, _ slots: Slots? = nil) { (self.name, self.slots) = (name, slots) }

  init(stringLiteral name: String) { self.init(name) }

  func hasRoom(_ rank: KeyEntry.Rank, isOffered: Bool) -> Bool { slots.map { isOffered || $0.count > 0 } ?? true }

  func takeSlot(_ rank: KeyEntry.Rank, isOffered: Bool) -> Bool {
    guard let slots, isOffered || slots.count > 0 else { return false }
    if !isOffered { slots.count -= 1 }
    return true
  }

  func willBeCalled() {}

  func slotIsOffered() {}

  func returnSlot() { slots?.count += 1 }

  func callWasWithdrawn() {}

  static func == (left: Self, right: Self) -> Bool { left.name == right.name }

  func hash(into hasher: inout Hasher) { hasher.combine(name) }
}
