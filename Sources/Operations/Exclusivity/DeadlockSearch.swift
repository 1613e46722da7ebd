/// A search for members of holders that wait, directly or indirectly, for a holder around them. The entries are copied
/// deeply. The search therefore needs no lock, and ThreadSanitizer reports no false race.
struct DeadlockSearch {
  enum Finding: Equatable {
    /// A member waits behind claimants that wait for a holder around it, and must pass them.
    case pass(KeyTicket)
    /// A member waits forever for keys.
    case refuse(KeyTicket)
  }

  private var entries: [KeyTicket: KeyEntry]
  private var loads: [Int: KeyUse.Load]
  /// The waiting entries, by use, in the order of their ranks.
  private var waiting: [Int: ArrayDeque<KeyEntry.Rank>] = [:]
  /// The entries inside each holder.
  private var members: [KeyTicket: Set<KeyTicket>] = [:]

  init(_ entries: [KeyTicket: KeyEntry], _ loads: [Int: KeyUse.Load]) {
    (self.entries, self.loads) = (entries, loads)
    for entry in entries.values.sorted(by: { $0.rank < $1.rank }) {
      for group in entry.enclosing { members[group, default: []].insert(entry.ticket) }
      if entry.state.isHolding { continue }
      for share in entry.shares { waiting[share.use, default: ArrayDeque()].append(entry.rank) }
    }
  }

  /// Returns what resolves all deadlocks. Each finding takes for granted that those before it are carried out.
  consuming func findings() -> [Finding] {
    var findings: [Finding] = []
    while let finding = finding() {
      findings.append(finding)
      switch finding {
      case .pass(let ticket), .refuse(let ticket): _ = entries[ticket].map { remove($0) }
      }
    }
    return findings
  }

  private mutating func finding() -> Finding? {
    finishAll(inOrder: true)
    var rest = self
    rest.finishAll(inOrder: false)
    if let victim = rest.lastWaiterForOwnGroup() { return .refuse(victim) }
    let members = entries.values.filter { !$0.state.isHolding && $0.holder != nil && isAdmitted($0) }
    return members.min { $0.rank < $1.rank }.map { .pass($0.ticket) }
  }

  /// Removes every entry that can finish: a holder that has no members left, and a waiter that its keys admit and, if the
  /// order counts, that is the first in its wait queues. The remaining entries wait for each other.
  private mutating func finishAll(inOrder: Bool) {
    var pending = Array(entries.keys)
    while let ticket = pending.popLast() {
      guard let entry = entries[ticket], canFinish(entry, inOrder) else { continue }
      remove(entry)
      for ranks in entry.shares.compactMap({ waiting[$0.use] }) {
        // Without the order, a waiter that leaves lets no other one finish.
        pending += ranks.all.prefix(inOrder ? 1 : entry.state.isHolding ? .max : 0).compactMap { $0?.ticket }
      }
      pending += entry.enclosing
    }
  }

  private mutating func remove(_ entry: KeyEntry) {
    entries[entry.ticket] = nil
    for share in entry.shares {
      if entry.state.isHolding {
        loads[share.use]?.remove(entry.ticket, share)
      } else {
        waiting[share.use]?.remove(entry.rank)
      }
    }
    for group in entry.enclosing { members[group]?.remove(entry.ticket) }
  }

  private func canFinish(_ entry: KeyEntry, _ inOrder: Bool) -> Bool {
    if entry.state.isHolding { return members[entry.ticket]?.isEmpty ?? true }
    let isFirst = !inOrder || entry.isPreferred || entry.shares.allSatisfy { waiting[$0.use]?.first == entry.rank }
    return isFirst && isAdmitted(entry)
  }

  private func isAdmitted(_ entry: KeyEntry) -> Bool { entry.shares.allSatisfy { isAdmitted($0) } }

  private func isAdmitted(_ share: KeyEntry.Share) -> Bool { loads[share.use]?.admits(share) ?? true }

  private func lastWaiterForOwnGroup() -> KeyTicket? {
    let tickets = entries.keys.sorted()
    let nodes = Dictionary(uniqueKeysWithValues: zip(tickets, tickets.indices))
    // Each use is a node, because n waiters for m holders are n·m pairs.
    let uses = Dictionary(uniqueKeysWithValues: zip(loads.keys, tickets.count...))
    let waits = tickets.compactMap { entries[$0] }.map { entry in
      if entry.state.isHolding { return members[entry.ticket]?.compactMap { nodes[$0] } ?? [] }
      return entry.shares.filter { !isAdmitted($0) }.compactMap { uses[$0.use] }
    }
    return WaitOrder(waits + loads.values.map { $0.tickets.compactMap { nodes[$0] } }).stuck.compactMap { items, _ in
      let set = Set(items.filter { $0 < tickets.count }.map { tickets[$0] })
      let waiters = set.compactMap { entries[$0] }.filter { !$0.state.isHolding && !set.isDisjoint(with: $0.enclosing) }
      return waiters.map(\.ticket).max()
    }.max()
  }
}

extension KeyTable {
  /// Returns a search if one is due. It leaves out throttles, and claimants that have been called or are away. Members of
  /// holders about to be cancelled are left to a later search.
  mutating func beginDeadlockSearch() -> DeadlockSearch? {
    guard let time = searchTime, time <= now else { return nil }
    searchTime = nil
    var copies: [KeyTicket: KeyEntry] = [:]
    var loads: [Int: KeyUse.Load] = [:]
    for entry in entries.all where entry.state == .waiting || entry.state.isHolding {
      if entry.state == .waiting, entry.enclosing.contains(where: { isAboutToBeCancelled($0) }) {
        suspectDeadlock()
        continue
      }
      var copy = KeyEntry(rank: entry.rank, enclosing: entry.enclosing.map { $0 }, holder: entry.holder, place: .none)
      copy.shares = entry.shares.filter { $0.interval == nil }
      (copy.state, copy.isPreferred) = (entry.state, entry.isPreferred)
      copies[entry.ticket] = copy
      for share in copy.shares {
        if loads[share.use] == nil { loads[share.use] = KeyUse.Load(limit: uses[share.use].holders.limit) }
        if entry.state.isHolding { loads[share.use]?.add(entry.ticket, share) }
      }
    }
    return DeadlockSearch(copies, loads)
  }

  private func isAboutToBeCancelled(_ ticket: Ticket) -> Bool {
    if case .replaced(let time) = state(of: ticket) { time > now } else { false }
  }

  /// Resolves a deadlock. The table may have changed since the search.
  mutating func resolve(_ finding: DeadlockSearch.Finding, _ effects: inout [Effect]) {
    suspectDeadlock()
    switch finding {
    case .pass(let ticket): prefer(ticket, &effects)
    case .refuse(let ticket):
      guard let entry = self[ticket], entry.state == .waiting, let waiter = claimant(ticket) else { return }
      for share in entry.shares where share.interval == nil && !uses[share.use].holders.admits(share) {
        let holders = uses[share.use].holders.tickets.filter { !entry.enclosing.contains($0) }
        let holder = (holders.min() ?? uses[share.use].holders.tickets.min()).flatMap { claimant($0) }
        return effects.append(.cancel(waiter, .deadlock(uses[share.use].id.key, holder: holder)))
      }
    }
  }
}
