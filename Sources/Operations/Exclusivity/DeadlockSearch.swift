/// A search for a deadlock, in which members of holders wait for keys of other holders. It has a copy of the entries,
/// so that it needs no lock. The copy is deep, because ThreadSanitizer does not detect that an array's copy was
/// released.
struct DeadlockSearch {
  typealias Ticket = Int

  enum Remedy {
    /// Serve these members of holders before the waiters for those holders.
    case prefer([Ticket])
    /// Cancel this member of a holder, because no member can be served first.
    case refuse(Ticket)
  }

  struct Entry {
    let state: KeyState
    let claims: [(queue: Int, limit: Int)]
    let enclosing: [Ticket]
  }

  private var entries: [Ticket: Entry]
  private var queues: [Int: KeyQueue] = [:]
  private var memberCounts: [Ticket: Int] = [:]

  init(_ entries: [Ticket: Entry]) { self.entries = entries }

  func remedy() -> Remedy? {
    var rest = self
    rest.fillQueues()
    rest.finishAll()
    let members = rest.entries.filter { $1.state.isWaiting && !$1.enclosing.isEmpty }.keys.sorted()
    let preferred = members.filter { rest.waitsForOrderOnly($0) }
    if !preferred.isEmpty { return .prefer(preferred) }
    return rest.lastWaiterForOwnGroup(among: members).map { .refuse($0) }
  }

  private mutating func fillQueues() {
    for (ticket, entry) in entries.sorted(by: { $0.key < $1.key }) {
      for group in entry.enclosing { memberCounts[group, default: 0] += 1 }
      for (index, limit) in entry.claims {
        switch entry.state {
        case .waiting: queues[index, default: .vacant].waiting.append(ticket)
        case .preferred: queues[index, default: .vacant].preferred.append(ticket)
        default: queues[index, default: .vacant].add(holder: ticket, limit: limit)
        }
      }
    }
  }

  // MARK: Finishing

  /// Removes every entry that can finish. A holder finishes when it has no members left. A waiter has no members, so it
  /// finishes when it can be granted its keys. The remaining entries wait for each other.
  private mutating func finishAll() {
    var pending = Array(entries.keys)
    while let ticket = pending.popLast() {
      guard let entry = entries[ticket], canFinish(ticket, entry) else { continue }
      entries[ticket] = nil
      for (index, limit) in entry.claims {
        switch entry.state {
        case .waiting: queues[index]?.waiting.popFirst()
        case .preferred: break
        default:
          queues[index]?.remove(holder: ticket, limit: limit)
          for waiter in queues[index]?.preferred.all.map({ $0 }) ?? [] {
            if let entry = entries[waiter], canFinish(waiter, entry) { pending.append(waiter) }
          }
        }
        while let first = queues[index]?.preferred.first, entries[first] == nil { queues[index]?.preferred.popFirst() }
        if let first = queues[index]?.waiting.first { pending.append(first) }
      }
      for group in entry.enclosing {
        memberCounts[group]? -= 1
        pending.append(group)
      }
    }
  }

  private func canFinish(_ ticket: Ticket, _ entry: Entry) -> Bool {
    switch entry.state {
    case .waiting:
      entry.claims.allSatisfy { queue, _ in
        queues[queue]?.preferred.isEmpty == true && queues[queue]?.waiting.first == ticket
      } && waitsForNoHolder(entry)
    case .preferred: waitsForNoHolder(entry)
    default: memberCounts[ticket] ?? 0 == 0
    }
  }

  private func waitsForNoHolder(_ entry: Entry) -> Bool {
    entry.claims.allSatisfy { queue, limit in queues[queue]?.admits(limit) == true }
  }

  // MARK: What remains

  private func waitsForOrderOnly(_ ticket: Ticket) -> Bool {
    entries[ticket].map { $0.state == .waiting && waitsForNoHolder($0) } ?? false
  }

  /// The last of these waiters that waits, directly or indirectly, for a holder that encloses it.
  private func lastWaiterForOwnGroup(among waiters: [Ticket]) -> Ticket? {
    var members: [Ticket: [Ticket]] = [:]
    for waiter in waiters {
      for group in entries[waiter]?.enclosing ?? [] { members[group, default: []].append(waiter) }
    }
    return waiters.last { waiter in
      var seen: Set<Ticket> = []
      var toVisit = [waiter]
      while let next = toVisit.popLast() {
        guard let entry = entries[next] else { continue }
        if next != waiter, entries[waiter]?.enclosing.contains(next) == true { return true }
        var following = entry.state.isWaiting ? [] : members[next] ?? []
        if entry.state.isWaiting {
          for (queue, limit) in entry.claims where queues[queue]?.admits(limit) == false {
            following += queues[queue]?.holders ?? []
          }
        }
        toVisit += following.filter { seen.insert($0).inserted }
      }
      return false
    }
  }
}

extension KeyTable {
  /// Returns a search without throttles, and without entries that wait only for a slot or are about to be cancelled.
  mutating func beginDeadlockSearch() -> DeadlockSearch {
    mayDeadlock = false
    var copies: [Ticket: DeadlockSearch.Entry] = [:]
    for (ticket, entry) in entries {
      switch entry.state {
      case .deferred, .permitted, .overdue: continue
      case .waiting, .preferred:
        if entry.enclosing.contains(where: { entries[$0]?.state == .replaced }) { continue }
      case .holding, .replaced: break
      }
      copies[ticket] = DeadlockSearch.Entry(
        state: entry.state,
        claims: entry.claims.map { ($0.queue, $0.limit) },
        enclosing: entry.enclosing.map { $0 }
      )
    }
    return DeadlockSearch(copies)
  }

  mutating func apply(_ remedy: DeadlockSearch.Remedy, _ effects: inout [Effect]) {
    // There may be another deadlock.
    mayDeadlock = true
    switch remedy {
    case .prefer(let members): prefer(members, &effects)
    case .refuse(let ticket):
      guard let entry = entries[ticket], entry.state.isWaiting else { return }
      for claim in entry.claims where !admits(claim) {
        let holder = queues[claim.queue].holders.first.flatMap { entries[$0]?.claimant }
        return effects.append(.refuse(entry.claimant, queues[claim.queue].id.key, holder: holder))
      }
    }
  }

  private mutating func prefer(_ members: [Ticket], _ effects: inout [Effect]) {
    for ticket in members {
      guard let entry = entries[ticket] else { continue }
      for claim in entry.claims {
        guard let first = firstWaiter(of: claim.queue), first != ticket else { continue }
        entries[first]?.yieldsTo.formUnion(entry.enclosing)
      }
    }
    for ticket in members {
      guard let entry = entries[ticket], entry.state == .waiting || entry.state == .deferred else { continue }
      if entry.state == .deferred { requeue([ticket]) }
      prefer(ticket)
      queuesToServe += entry.claims.map(\.queue)
    }
    serve(&effects)
  }
}
