@testable import Operations

extension ExclusivityDomain {
  var isUnused: Bool {
    sharedRuns.withLock { $0.isEmpty }
      && KeyRegistry.withTable { table in !table.useIndices.keys.contains { $0.domain === self } }
  }
}

extension KeyTable {
  var isEmpty: Bool { entries.indices.isEmpty && uses.indices.isEmpty && useIndices.isEmpty && !useIndices.hasMuchRoom }
}

/// A claimant of a table of keys that is tested as a value.
final class TestClaimant: KeyClaimant, @unchecked Sendable {
  /// The free slots of a group. The test copies them in and out if it copies the table.
  final class Slots: Sendable {
    private let free: Locked<Int>

    init(_ count: Int) { free = Locked(count) }

    var count: Int {
      get { free.withLock { $0 } }
      set { free.withLock { $0 = newValue } }
    }
  }

  private let givenName: String
  private let slots: Slots?

  init(_ name: String, _ slots: Slots? = nil) {
    (givenName, self.slots) = (name, slots)
    super.init()
  }

  override var name: String? { givenName }

  override func hasRoom(_ rank: KeyEntry.Rank, isOffered: Bool) -> Bool {
    slots.map { isOffered || $0.count > 0 } ?? true
  }

  override func takeSlot(_ rank: KeyEntry.Rank, isOffered: Bool) -> Bool {
    guard let slots, isOffered || slots.count > 0 else { return false }
    if !isOffered { slots.count -= 1 }
    return true
  }

  override func returnSlot() { slots?.count += 1 }
}
