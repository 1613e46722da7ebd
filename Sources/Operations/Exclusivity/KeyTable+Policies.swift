extension KeyTable {
  /// Returns false if the claimant is dropped.
  mutating func applyPolicies(
    of claimant: Claimant,
    _ claims: [KeyClaim],
    inside enclosing: [Ticket],
    _ effects: inout [Effect]
  ) -> Bool {
    for claim in claims where claim.policy == .drop {
      guard let owner = self.claimant(of: useID(of: claim, inside: enclosing)) else { continue }
      effects.append(.cancel(claimant, .excluded(from: claim.key, by: owner)))
      return false
    }
    var replaced: [Ticket: ExclusivityPolicy] = [:]
    for claim in claims where claim.policy == .replace || claim.policy == .latest {
      guard let use = useIndices[useID(of: claim, inside: enclosing)].map({ uses[$0] }) else { continue }
      // Without this check, n claimants that replace each other would read n replaced holders each.
      let replacesHolders = claim.policy == .replace && use.replacedCount < use.holders.count
      for ticket in use.claimants + (replacesHolders ? use.holders.tickets : []) where replaced[ticket] != .replace {
        replaced[ticket] = claim.policy
      }
    }
    var waiting: [Ticket] = []
    for (ticket, policy) in replaced.sorted(by: { $0.key > $1.key }) {
      guard let state = state(of: ticket), !state.isReplaced, state != .lending else { continue }
      let refusal = policy == .replace ? Refusal.replaced(by: claimant) : nil
      if let other = self.claimant(ticket) { effects.append(.cancel(other, refusal)) }
      if state.isHolding {
        entries[ticket.place].state = .replaced(until: now + 20)
        for share in entries[ticket.place].shares { uses[share.use].replacedCount += 1 }
      } else {
        waiting.append(ticket)
      }
    }
    remove(waiting, &effects)
    return true
  }
}
