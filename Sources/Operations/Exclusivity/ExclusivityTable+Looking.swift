/// What the table says about who stands where.
extension ExclusivityTable {
  /// Who is first in a line, whether it holds the key or waits for others.
  func first(at place: Place) -> Ticket? { lines[place]?.first }

  /// A key that somebody holds or waits for, and the first of those.
  func firstTaken(of places: [Place]) -> (key: ExclusivityKey, by: Ticket)? {
    for place in places {
      if let first = first(at: place) { return (place.key, first) }
    }
    return nil
  }

  /// All who stand in one of these lines, in the order of asking.
  func tickets(at places: [Place]) -> [Ticket] {
    Set(places.flatMap { lines[$0]?.slots ?? [] }).filter { entries[$0] != nil }.sorted()
  }

  /// Those who hold the key, each inside the one before, and all who wait for it, in the order of asking.
  func claimants(of key: ExclusivityKey) -> (holders: [Claimant], waiting: [Claimant]) {
    var holders: [Claimant] = []
    var waiting: [Ticket] = []
    var place = Place(key: key)
    while let first = first(at: place), let entry = entries[first] {
      let tickets = tickets(at: [place])
      guard entry.isGranted else {
        waiting += tickets
        break
      }
      waiting += tickets.filter { $0 != first }
      holders.append(entry.claimant)
      place.holder = first
    }
    return (holders, waiting.sorted().compactMap { entries[$0]?.claimant })
  }

  /// Whether nothing is kept for keys that nobody uses, not even room.
  var isEmpty: Bool {
    entries.isEmpty && lines.isEmpty && unbegun.isEmpty && !entries.hasMuchRoom && !lines.hasMuchRoom
  }
}
