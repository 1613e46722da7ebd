extension KeyTable {
  mutating func prefer(_ ticket: Ticket) {
    entries[ticket]?.state = .preferred
    for claim in entries[ticket]?.claims ?? [] { queues[claim.queue].preferred.append(ticket) }
  }

  /// Returns the first waiter of a queue. Defers waiters whose queue or group has an overdue entry before them.
  mutating func firstWaiter(of queue: Int) -> Ticket? {
    while let ticket = frontWaiter(of: queue) {
      if queues[queue].overdue.isEmpty { return ticket }
      guard let entry = entries[ticket], let host = entry.host, queues[queue].overdue[host] != nil else {
        return ticket
      }
      queues[queue].waiting.popFirst()
      queues[queue].deferred[host, default: []].insert(ticket)
      entries[ticket]?.state = .deferred
      for claim in entry.claims where claim.queue != queue { queuesToServe.append(claim.queue) }
    }
    return nil
  }

  mutating func frontWaiter(of queue: Int) -> Ticket? {
    while let ticket = queues[queue].waiting.first {
      if entries[ticket]?.state == .waiting { return ticket }
      queues[queue].waiting.popFirst()
    }
    return nil
  }

  mutating func trimPreferred(of queue: Int) {
    while let ticket = queues[queue].preferred.first, entries[ticket]?.state != .preferred {
      queues[queue].preferred.popFirst()
    }
  }

  /// Returns waiters to the wait queues of their keys, in the order of their arrival.
  mutating func requeue(_ tickets: [Ticket]) {
    var requeued: [Int: [Ticket]] = [:]
    for ticket in tickets.sorted() {
      guard let entry = entries[ticket] else { continue }
      entries[ticket]?.state = .waiting
      for claim in entry.claims {
        if let host = entry.host { queues[claim.queue].deferred[host]?.remove(ticket) }
        requeued[claim.queue, default: []].append(ticket)
      }
    }
    for (queue, tickets) in requeued {
      mayDeadlock = true
      if let last = tickets.last, last < queues[queue].waiting.first ?? .max {
        queues[queue].waiting.prepend(tickets)
      } else {
        let all = Set(tickets).union(queues[queue].waiting.all).filter { entries[$0]?.state == .waiting }
        queues[queue].waiting = ArrayDeque(all.sorted())
      }
    }
  }

  // MARK: Granting

  /// Grants every entry in ``queuesToServe`` that can proceed. The grant of a newcomer is no effect, because the caller
  /// reads its state.
  mutating func serve(_ effects: inout [Effect], newcomer: Ticket? = nil) {
    while let queue = queuesToServe.popLast() {
      while let ticket = nextGrantable(in: queue, &effects) {
        guard let entry = grant(ticket, &effects) else { continue }
        if ticket != newcomer {
          effects.append(entry.host == nil ? .resume(entry.claimant) : .permit(entry.claimant))
        }
        for claim in entry.claims where claim.queue != queue { queuesToServe.append(claim.queue) }
      }
    }
  }

  private mutating func nextGrantable(in queue: Int, _ effects: inout [Effect]) -> Ticket? {
    guard queues[queue].hasWaiters, queues[queue].admits(.max) else { return nil }
    trimPreferred(of: queue)
    // Preferred waiters do not wait for each other: the keys of one may be held by an operation that encloses another.
    for ticket in queues[queue].preferred.all where isGrantable(ticket, &effects) { return ticket }
    guard let ticket = firstWaiter(of: queue), isGrantable(ticket, &effects) else { return nil }
    return ticket
  }

  mutating func isGrantable(_ ticket: Ticket, _ effects: inout [Effect]) -> Bool {
    guard let entry = entries[ticket] else { return false }
    switch entry.state {
    case .preferred: guard entry.claims.allSatisfy(admits) else { return false }
    case .waiting:
      for claim in entry.claims {
        trimPreferred(of: claim.queue)
        guard admits(claim), queues[claim.queue].preferred.isEmpty, firstWaiter(of: claim.queue) == ticket else {
          return false
        }
      }
    case .deferred, .permitted, .overdue, .holding, .replaced: return false
    }
    return isOpen(ticket, &effects)
  }

  func admits(_ claim: Claim) -> Bool { queues[claim.queue].admits(claim.limit) }

  @discardableResult
  mutating func grant(_ ticket: Ticket, _ effects: inout [Effect]) -> Entry? {
    guard var entry = entries[ticket] else { return nil }
    waitingCount -= 1
    for claim in entry.claims {
      queues[claim.queue].add(holder: ticket, limit: claim.limit)
      if queues[claim.queue].waiting.first == ticket { queues[claim.queue].waiting.popFirst() }
    }
    if entry.host == nil {
      entry.state = .holding
      noteStart(of: entry, &effects)
    } else {
      entry.state = .permitted(until: epoch + entry.patience)
      permitted.insert(ticket)
      reserveStart(of: entry)
    }
    // Costs a third of a change in place.
    entries[ticket] = entry
    return entry
  }

  // MARK: Taking back

  mutating func endPermit(_ ticket: Ticket, _ entry: Entry) {
    permitted.remove(ticket)
    endReservation(of: entry)
  }

  mutating func releaseKeys(of ticket: Ticket, _ entry: Entry) {
    for claim in entry.claims {
      queues[claim.queue].remove(holder: ticket, limit: claim.limit)
      if entry.state == .replaced { queues[claim.queue].replacedCount -= 1 }
      queuesToServe.append(claim.queue)
    }
  }

  /// Removes an overdue entry from its queues, and returns the entries that were deferred only because of it.
  mutating func endOverdue(_ ticket: Ticket, _ entry: Entry) -> [Ticket] {
    guard let host = entry.host else { return [] }
    var freed: Set<Ticket> = []
    for claim in entry.claims {
      queues[claim.queue].overdue[host]?.remove(ticket)
      guard queues[claim.queue].overdue[host]?.isEmpty == true else { continue }
      queues[claim.queue].overdue[host] = nil
      freed.formUnion(queues[claim.queue].deferred.removeValue(forKey: host) ?? [])
    }
    return Array(freed)
  }

  // MARK: Reading

  func has(_ entry: Entry, _ key: ExclusivityKey, in domain: ExclusivityDomain) -> Bool {
    entry.claims.contains { claim in
      queues[claim.queue].id.key == key && queues[claim.queue].id.domain === domain
    }
  }

  /// Returns the entries of a key in all its queues, in the order of arrival.
  func entries(of key: ExclusivityKey, in domain: ExclusivityDomain) -> [Entry] {
    entries.filter { has($1, key, in: domain) }.sorted { $0.key < $1.key }.map(\.value)
  }

  /// Returns an operation that holds a key or waits for it, preferably a holder.
  mutating func claimant(of id: KeyQueue.ID) -> Claimant? {
    guard let index = queueIndices[id] else { return nil }
    trimPreferred(of: index)
    let queue = queues[index]
    let ticket =
      queue.holders.first ?? queue.preferred.first ?? queue.overdue.values.first?.first ?? frontWaiter(of: index)
      ?? queue.deferred.values.lazy.joined().first
    return ticket.flatMap { entries[$0]?.claimant }
  }

  /// What keeps entries from a key: its holders or, if the key admits another holder, the first waiter.
  struct Obstacle: Hashable {
    let queue: KeyQueue.ID
    let isFull: Bool
  }

  /// Returns the obstacle of a waiting entry for each of its keys, and the number of holders that the key admits.
  func obstacles(of ticket: Ticket) -> [(obstacle: Obstacle, limit: Int)] {
    guard let entry = entries[ticket], entry.state.isWaiting else { return [] }
    return entry.claims.map { claim in
      let queue = queues[claim.queue]
      let obstacle = Obstacle(queue: queue.id, isFull: !queue.admits(claim.limit))
      return (obstacle, min(claim.limit, queue.smallestLimit))
    }
  }

  /// Returns the operations that are an obstacle. One that holds no key has a permit or is the first waiter.
  func users(of obstacle: Obstacle) -> [(claimant: Claimant, isHolder: Bool)] {
    guard let queue = queueIndices[obstacle.queue].map({ queues[$0] }) else { return [] }
    let tickets: [Ticket]
    if obstacle.isFull {
      tickets = queue.holders.sorted()
    } else {
      let first =
        queue.preferred.all.first { entries[$0]?.state == .preferred }
        ?? queue.waiting.all.first { entries[$0]?.state == .waiting }
      tickets = first.map { [$0] } ?? []
    }
    return tickets.compactMap { entries[$0] }.map { ($0.claimant, $0.state.isHolding) }
  }
}
