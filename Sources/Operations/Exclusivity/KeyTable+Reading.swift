extension KeyTable {
  func has(_ entry: Entry, _ key: ExclusivityKey, in domain: ExclusivityDomain) -> Bool {
    entry.claims.contains { claim in
      guard let id = uses[claim.use]?.id else { return false }
      return id.key == key && id.domain === domain
    }
  }

  /// Returns the entries of a key in all its uses, in the order of arrival.
  func entries(of key: ExclusivityKey, in domain: ExclusivityDomain) -> [Entry] {
    entries.all.filter { has($0, key, in: domain) }.sorted { $0.ticket < $1.ticket }
  }

  /// Returns a claimant that holds a key, has been called for it, or waits for it, in this order of preference.
  func claimant(of id: KeyUse.ID) -> Claimant? {
    guard let use = useIndices[id].flatMap({ uses[$0] }) else { return nil }
    let ticket = use.holders.tickets.first ?? use.called.tickets.first ?? use.passed.first ?? firstWaiter(of: use)
    return ticket.flatMap { self[$0]?.claimant }
  }

  private func firstWaiter(of use: KeyUse) -> Ticket? { use.waiting.filter { self[$0] != nil }.min() }

  /// What keeps a claimant from a key: its holders or, if the key admits another holder, the claimants before it.
  struct Obstacle: Hashable {
    let use: KeyUse.ID
    let isFull: Bool
  }

  /// Returns the obstacle of a waiting claimant for each of its keys, and the limit of the key.
  func obstacles(of ticket: Ticket) -> [(obstacle: Obstacle, limit: Int)] {
    guard let entry = self[ticket], entry.state == .waiting else { return [] }
    return entry.claims.compactMap { claim in
      guard let use = uses[claim.use] else { return nil }
      let isFull = !use.admits(weight: claim.weight, limit: claim.limit, besideCalled: false)
      return (Obstacle(use: use.id, isFull: isFull), min(claim.limit, use.holders.smallestLimit))
    }
  }

  /// Returns the claimants that are an obstacle. One that holds no key has been called or is the first waiter.
  func users(of obstacle: Obstacle) -> [(claimant: Claimant, isHolder: Bool)] {
    guard let use = useIndices[obstacle.use].flatMap({ uses[$0] }) else { return [] }
    let tickets = obstacle.isFull ? use.holders.tickets.sorted() : use.called.tickets.min().map { [$0] } ?? []
    let others = tickets.isEmpty ? firstWaiter(of: use).map { [$0] } ?? [] : tickets
    return others.compactMap { self[$0] }.map { ($0.claimant, $0.state.isHolding) }
  }
}
