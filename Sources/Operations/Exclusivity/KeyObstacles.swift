extension KeyTable {
  /// Returns what a claimant takes of a key, apart from starts. Every claimant that is throttled under a key shares it.
  func share(of ticket: Ticket, _ key: ExclusivityKey, in domain: ExclusivityDomain) -> Entry.Share? {
    entries[ticket.place].shares.first { share in
      share.interval == nil && uses[share.use].id.domain === domain && uses[share.use].id.key == key
    }
  }

  /// Returns the claimants that hold a key or wait for it, in all its uses, in the order of arrival.
  func claimants(of key: ExclusivityKey, in domain: ExclusivityDomain, areHolding: Bool) -> [KeyClaimant] {
    entries.all.filter { $0.state != .away && $0.state.isHolding == areHolding }.map(\.ticket)
      .filter { share(of: $0, key, in: domain) != nil }.sorted().compactMap { claimant($0) }
  }

  /// Returns a claimant that holds a key, has been called for it, waits for it, or is away, in this order of preference.
  func claimant(of id: KeyUse.ID) -> KeyClaimant? {
    guard let use = useIndices[id].map({ uses[$0] }) else { return nil }
    let called = use.called.tickets.first ?? use.passed.values.first?.load.tickets.first
    let ticket = use.holders.tickets.first { entries.contains($0) } ?? called ?? use.first ?? use.away.first
    return ticket.flatMap { claimant($0) }
  }

  /// What keeps a claimant from a key: its holders or, if the key admits another holder, the claimants before it.
  enum Obstacle: Hashable {
    case holders(KeyUse.ID)
    /// One that has been called, or else the first in the wait queue.
    case earlier(KeyUse.ID)

    var use: KeyUse.ID {
      switch self {
      case .holders(let use), .earlier(let use): use
      }
    }

    var areHolders: Bool { if case .holders = self { true } else { false } }
  }

  /// Returns the obstacle of a waiting claimant for each of its keys, and the limit of the key.
  func obstacles(of ticket: Ticket) -> [(obstacle: Obstacle, limit: Int)] {
    guard let entry = self[ticket], entry.state == .waiting else { return [] }
    return entry.shares.filter { $0.interval == nil && !uses[$0.use].isClosed(to: $0) }.map { share in
      let use = uses[share.use]
      let isFree = use.holders.admits(share)
      return (isFree ? .earlier(use.id) : .holders(use.id), min(share.limit, use.holders.smallestLimit))
    }
  }

  /// Returns the holders for which a claimant waits or will wait, by key: those `known` that exclude it, or the others.
  func holders(before waiter: KeyClaimant, inside outer: [KeyClaimant], among known: [KeyClaimant]) -> [[KeyClaimant]] {
    let entry = waiter.ticket.flatMap { self[$0] }
    if waiter.ticket != nil, entry?.state.isHolding ?? true { return [] }
    let (outer, near) = (outer.compactMap(\.ticket), (outer + known).compactMap(\.ticket))
    let claims = entry == nil ? waiter.claims.filter { $0.interval == nil } : []
    // At the arrival at a key in use, these policies end the wait of the claimant or of the holders.
    let ending = claims.filter { [.drop, .replace].contains($0.policy) }
    if ending.contains(where: { useIndices[useID(of: $0, inside: outer)] != nil }) { return [] }
    let new = claims.flatMap { claim in
      parts(of: claim, inside: outer).compactMap { id, weight in
        useIndices[id].map { Entry.Share(use: $0, limit: claim.limit, weight: weight) }
      }
    }
    return (entry?.shares ?? new).compactMap { share in
      let use = uses[share.use]
      var share = share
      // A claimant that the holders admit waits behind the first one in the wait queue.
      if use.holders.admits(share), let entry, entry.state == .waiting, let first = use.first.flatMap({ self[$0] }),
        first.rank < entry.rank
      {
        share = first.shares.first { $0.use == share.use } ?? share
      }
      if share.interval != nil || use.isClosed(to: share) || use.holders.admits(share) { return nil }
      var load = KeyUse.Load(limit: use.holders.limit)
      let others = use.holders.tickets.filter { !near.contains($0) }
      // Those around the claimant count: a stronger claim weighs only the rest. Ended work only lends its keys.
      for ticket in use.holders.tickets where near.contains(ticket) && state(of: ticket) != .lending {
        for held in self[ticket]?.shares ?? [] where held.use == share.use { load.add(ticket, held) }
      }
      let excluding = load.admits(share) ? others : load.tickets.filter { !outer.contains($0) }
      return excluding.compactMap { claimant($0) }
    }
  }

  func users(of obstacle: Obstacle) -> [KeyClaimant] {
    guard let use = useIndices[obstacle.use].map({ uses[$0] }) else { return [] }
    let tickets =
      switch obstacle {
      case .holders: use.holders.tickets.sorted()
      case .earlier:
        [use.called.tickets.min() ?? use.passed.values.flatMap(\.load.tickets).min() ?? use.first].compactMap(\.self)
      }
    return tickets.compactMap { claimant($0) }
  }

  /// What keeps a waiting claimant from a key, apart from other claimants.
  func restraint(of ticket: Ticket) -> KeyRestraint? {
    guard let entry = self[ticket], entry.state == .waiting else { return nil }
    let restraining = entry.shares.first { share in
      share.interval == nil ? uses[share.use].isClosed(to: share) : !uses[share.use].holders.admits(share)
    }
    guard let share = restraining else { return nil }
    let use = uses[share.use]
    if share.interval != nil { return .window(use.id.key) }
    return use.pauses.isEmpty ? .limit(use.id.key, use.holders.limit) : .pause(use.id.key, Array(use.pauses.values))
  }
}

enum KeyRestraint {
  /// The window of a throttle is full.
  case window(ExclusivityKey)
  /// The rests are read without a lock.
  case pause(ExclusivityKey, [@Sendable () -> Duration])
  case limit(ExclusivityKey, Int)

  var description: String {
    switch self {
    case .window(let key): "the throttled key \(key.quoted)"
    case .pause(let key, let rests):
      "the key \(key.quoted), which is paused for another \((rests.map { $0() }.max() ?? .zero).reading)"
    case .limit(let key, let limit): "the key \(key.quoted), whose limit is set to \(limit)"
    }
  }
}
