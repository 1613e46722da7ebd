extension KeyTable {
  func has(_ ticket: Ticket, _ key: ExclusivityKey, in domain: ExclusivityDomain) -> Bool {
    entries[ticket.place].shares.contains { uses[$0.use].id.domain === domain && uses[$0.use].id.key == key }
  }

  /// Returns the claimants that hold a key or wait for it, in all its uses, in the order of arrival.
  func claimants(of key: ExclusivityKey, in domain: ExclusivityDomain, areHolding: Bool) -> [Claimant] {
    entries.all.filter { $0.state.isHolding == areHolding && has($0.ticket, key, in: domain) }.map(\.ticket).sorted()
      .compactMap { claimant($0) }
  }

  /// Returns a claimant that holds a key, has been called for it, or waits for it, in this order of preference.
  func claimant(of id: KeyUse.ID) -> Claimant? {
    guard let use = useIndices[id].map({ uses[$0] }) else { return nil }
    let called = use.called.tickets.first ?? use.passed.values.first?.first
    let ticket = use.holders.tickets.first ?? called ?? use.firstWaiters.first
    return ticket.flatMap { claimant($0) }
  }

  /// What keeps a claimant from a key: its holders or, if the key admits another holder, the claimants before it.
  enum Obstacle: Hashable {
    case holders(KeyUse.ID)
    /// Those that have been called, or else the first in the wait queue of the claimant.
    case earlier(KeyUse.ID, waitQueue: Int?)

    var use: KeyUse.ID {
      switch self {
      case .holders(let use), .earlier(let use, _): use
      }
    }
  }

  /// Returns the obstacle of a waiting claimant for each of its keys, and the limit of the key.
  func obstacles(of ticket: Ticket) -> [(obstacle: Obstacle, limit: Int)] {
    guard let entry = self[ticket], entry.state == .waiting else { return [] }
    return entry.shares.map { share in
      let use = uses[share.use]
      let isFree = use.admits(share, besideCalled: false)
      let obstacle = isFree ? Obstacle.earlier(use.id, waitQueue: entry.waitQueue) : .holders(use.id)
      return (obstacle, min(share.limit, use.holders.smallestLimit))
    }
  }

  /// Returns the claimants that are an obstacle. One that holds no key has been called or is the first waiter.
  func users(of obstacle: Obstacle) -> [(claimant: Claimant, isHolder: Bool)] {
    guard let use = useIndices[obstacle.use].map({ uses[$0] }) else { return [] }
    let tickets =
      switch obstacle {
      case .holders: use.holders.tickets.sorted()
      case .earlier(_, let waitQueue):
        [use.called.tickets.min() ?? use.first(in: waitQueue)].compactMap(\.self)
      }
    return tickets.compactMap { ticket in claimant(ticket).map { ($0, state(of: ticket)?.isHolding == true) } }
  }
}
