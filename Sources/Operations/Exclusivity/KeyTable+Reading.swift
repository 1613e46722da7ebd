/// Reading the table, for policies, reports and debugging.
extension KeyTable {
  /// The entries of a key, by state and in the order in which they came.
  func tickets(of key: ExclusivityKey, in domain: ExclusivityDomain) -> [Ticket] {
    entries.filter { _, entry in
      entry.claims.contains { claim in
        lines[claim.line].map { $0.place.key == key && $0.place.domain === domain } ?? false
      }
    }.keys.sorted()
  }

  /// The entries that stand in these lines, whether they hold the key or wait for it, in the order in which they came.
  func tickets(at places: [Place]) -> [Ticket] {
    var result: Set<Ticket> = []
    for place in places {
      guard let index = lineIndices[place], let line = lines[index] else { continue }
      result.formUnion(line.holders)
      result.formUnion((line.passing.all + line.waiting.all).filter { entries[$0] != nil })
      for late in line.late.values { result.formUnion(late) }
      for aside in line.aside.values { result.formUnion(aside.filter { entries[$0] != nil }) }
    }
    return result.sorted()
  }

  /// The first that holds the key or waits for it.
  func first(at place: Place) -> Ticket? {
    guard let line = lineIndices[place].flatMap({ lines[$0] }) else { return nil }
    return line.holders.first ?? tickets(at: [place]).first
  }

  func holders(at place: Place) -> [Ticket] { lineIndices[place].flatMap { lines[$0]?.holders } ?? [] }

  /// What keeps an entry from going on: for each of its keys those that hold it, else the one that stands before.
  func obstacles(of ticket: Ticket) -> [(place: Place, limit: Int, other: Ticket, isHeld: Bool)] {
    guard let entry = entries[ticket], entry.state == .waiting else { return [] }
    return entry.claims.flatMap { claim -> [(place: Place, limit: Int, other: Ticket, isHeld: Bool)] in
      guard let line = lines[claim.line] else { return [] }
      if !line.admits(claim.limit) {
        return line.holders.map {
          (line.place, min(claim.limit, line.smallestLimit), $0, entries[$0]?.state == .holding)
        }
      }
      let first = (line.passing.all + line.waiting.all).first {
        isWaiting($0, passing: true) || isWaiting($0, passing: false)
      }
      guard let first, first != ticket else { return [] }
      return [(line.place, claim.limit, first, false)]
    }
  }

  /// Whether nothing is kept, not even room.
  var isEmpty: Bool { entries.isEmpty && lineIndices.isEmpty && !entries.hasMuchRoom && !lineIndices.hasMuchRoom }
}
