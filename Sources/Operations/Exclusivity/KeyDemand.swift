/// What a claimant needs of a key: room beside its holders, some of which may leave. A limit that was set from outside may
/// be lifted, and does not count.
struct KeyDemand {
  private let share: KeyEntry.Share
  private var load = KeyUse.Load()
  private var holders: [Int: [(ticket: KeyTicket, share: KeyEntry.Share)]] = [:]

  /// Nil for the claimant before it in a wait queue, which must leave in any case.
  init?(_ obstacle: KeyTable.Obstacle) {
    guard case .holders(_, let limit, let weight) = obstacle else { return nil }
    share = KeyEntry.Share(use: 0, limit: limit, weight: weight)
  }

  var isMet: Bool { load.admits(share) }

  mutating func add(_ ticket: KeyTicket, _ share: KeyEntry.Share, of node: Int) {
    load.add(ticket, share)
    holders[node, default: []].append((ticket, share))
  }

  /// Returns whether the demand is met when a holder has left.
  mutating func end(of node: Int) -> Bool {
    for (ticket, share) in holders.removeValue(forKey: node) ?? [] { load.remove(ticket, share) }
    return isMet
  }
}
