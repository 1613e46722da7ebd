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
    let called = use.called.tickets.first ?? use.yieldingTickets.first
    let ticket = use.holders.tickets.first { entries.contains($0) } ?? called ?? use.first ?? use.away.first
    return ticket.flatMap { claimant($0) }
  }

  /// What keeps claimants from a key: its holders or, if these admit another one, a claimant that comes first.
  enum Obstacle: Hashable {
    /// For all claims of the same kind.
    case holders(KeyUse.ID, limit: Int, weight: Int)
    case earlier(KeyUse.ID, KeyTicket)

    var key: ExclusivityKey {
      switch self {
      case .holders(let use, _, _), .earlier(let use, _): use.key
      }
    }

    var areHolders: Bool { if case .holders = self { true } else { false } }
  }

  typealias User = (claimant: KeyClaimant, ticket: Ticket, share: Entry.Share, isLending: Bool)

  /// Returns the obstacle of a waiting claimant for each of its keys, and the limit of the key. What time or a caller
  /// ends, such as a pause, a limit that was set, or a call, is none.
  mutating func obstacles(of ticket: Ticket) -> [(obstacle: Obstacle, limit: Int)] {
    guard let entry = self[ticket], entry.state == .waiting else { return [] }
    var found: [(obstacle: Obstacle, limit: Int)] = []
    for share in entry.shares where share.interval == nil && !uses[share.use].restrains(share) {
      let (id, limit) = (uses[share.use].id, min(share.limit, uses[share.use].holders.smallestLimit))
      if uses[share.use].holders.admits(share) {
        if uses[share.use].called.count > 0 { continue }
        let yielding = uses[share.use].yielding[entry.place]?.values.flatMap(\.load.tickets) ?? []
        let earlier = yielding.filter { entries[$0.place].rank < entry.rank }.min()
        if let earlier = earlier ?? blocker(of: ticket, in: share.use) { found.append((.earlier(id, earlier), limit)) }
      } else {
        found.append((.holders(id, limit: share.limit, weight: share.weight), limit))
      }
    }
    return found
  }

  /// Returns up to `count` of the claimants that an obstacle consists of, by their arrival, and the number of all.
  func users(of obstacle: Obstacle, atMost count: Int = .max) -> (first: [User], total: Int) {
    switch obstacle {
    case .earlier(let id, let ticket):
      guard let use = useIndices[id], let user = user(ticket, of: use) else { return ([], 0) }
      return ([user], 1)
    case .holders(let id, _, _):
      guard let use = useIndices[id] else { return ([], 0) }
      let holders = uses[use].holders
      return (holders.first(count).sorted().compactMap { user($0, of: use) }, holders.count)
    }
  }

  private func user(_ ticket: Ticket, of use: Int) -> User? {
    guard let claimant = claimant(ticket), let share = self[ticket]?.shares.first(where: { $0.use == use }) else {
      return nil
    }
    return (claimant, ticket, share, state(of: ticket) == .lending)
  }

  /// Returns the claimants that use the keys of a holder.
  func borrowers(of ticket: Ticket) -> [KeyClaimant] {
    (self[ticket]?.shares ?? []).filter { $0.interval == nil }.flatMap { share -> [KeyClaimant] in
      let id = KeyUse.ID(domain: uses[share.use].id.domain, key: uses[share.use].id.key, holder: ticket)
      guard let inner = useIndices[id].map({ uses[$0] }) else { return [] }
      return (inner.holders.tickets + inner.claimants).compactMap { claimant($0) }
    }
  }

  /// What keeps a waiting claimant from a key, apart from other claimants.
  func restraint(of ticket: Ticket) -> KeyRestraint? {
    guard let entry = self[ticket], entry.state == .waiting else { return nil }
    let restraining = entry.shares.first { share in
      share.interval == nil ? uses[share.use].restrains(share) : !uses[share.use].holders.admits(share)
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

/// What a claimant needs of a key: room beside its holders, some of which may leave. A set limit does not count.
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
