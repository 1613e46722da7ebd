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
  private let givenName: String

  init(_ name: String, _ room: GroupRoom? = nil) {
    givenName = name
    super.init()
    self.room = room
  }

  override var name: String? { givenName }
}

/// A group of which the table of keys knows, and which answers it as the engine of a group does.
struct TestGroup {
  let room = GroupRoom()
  var freeSlots: Int

  init(_ freeSlots: Int) { self.freeSlots = freeSlots }

  /// Before a change of a table that is a copy, because all copies share the room.
  func announce() { _ = room.change(to: freeSlots) }

  /// Makes a change, in which members whose turn comes take the free slots.
  mutating func givingSlots(in table: inout KeyTable, _ change: (inout KeyTable) -> Void) {
    announce()
    table.slots = (room.place, freeSlots, [])
    change(&table)
    let takers = exchange(&table.slots, with: (.started, 0, [])).takers
    if !takers.isEmpty { self.change(by: takers.count, in: &table) }
  }

  /// Changes the number of slots that are in use by the members of the group that hold keys.
  mutating func change(by count: Int, in table: inout KeyTable) {
    freeSlots -= count
    announce()
    if freeSlots == 0 { table.close(room.place) }
  }

  mutating func enter(
    _ claimant: KeyClaimant,
    inside enclosing: [KeyTicket],
    in table: inout KeyTable,
    _ effects: inout [KeyTable.Effect]
  ) {
    let place = room.place
    givingSlots(in: &table) { table in
      if let ticket = claimant.ticket {
        table.comeBack(ticket, at: place, &effects)
      } else {
        table.enter(claimant, inside: enclosing, at: place, &effects)
      }
    }
    if table.state(of: claimant)?.isCalled == true { effects.append(.call(claimant, isAnswered: false)) }
  }

  /// Before a member leaves.
  mutating func returnSlot(in table: inout KeyTable) {
    change(by: -1, in: &table)
    while let next = called(in: table).first.flatMap({ table.claimant($0.ticket) }), !table.recall(next) {}
  }

  private func called(in table: KeyTable) -> [KeyEntry.Rank] {
    table.entries.all.filter { $0.place == room.place && $0.state.isCalled }.map(\.rank).sorted()
  }

  /// Answers the first call, or lets the first called member take its keys. Returns whether there is one.
  mutating func answer(_ table: inout KeyTable, _ effects: inout [KeyTable.Effect]) -> Bool {
    let called = called(in: table)
    let asked = called.filter { table.state(of: $0.ticket) == .called(until: .max) }
    guard let first = freeSlots > 0 ? called.first : asked.first, let claimant = table.claimant(first.ticket) else {
      return false
    }
    let hasSlot = freeSlots > 0
    givingSlots(in: &table) { table in
      table.answer(claimant, hasSlot: hasSlot, &effects)
      table.serve(&effects)
    }
    return true
  }
}
