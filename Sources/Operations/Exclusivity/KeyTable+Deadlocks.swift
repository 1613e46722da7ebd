/// Detecting and ending deadlocks, in which the members of holders wait for keys of other holders.
extension KeyTable {
  /// The changes that end a deadlock.
  struct Remedy {
    /// The members of holders to serve before the waiters for those holders.
    var preferred: [Ticket] = []
    /// The member to cancel, if no member can be served first.
    var refused: Ticket?
  }

  /// Begins a search for a deadlock.
  ///
  /// - Returns: The table to search. It shares no storage with this one, because ThreadSanitizer does not detect that a
  ///   copy of an array has been released.
  mutating func beginDeadlockSearch() -> Self {
    mayDeadlock = false
    var copy = Self()
    copy.entries.reserveCapacity(entries.count)
    for (ticket, entry) in entries {
      var fresh = entry
      fresh.claims = entry.claims.map { $0 }
      fresh.enclosing = entry.enclosing.map { $0 }
      fresh.yieldsTo = Set(entry.yieldsTo.map { $0 })
      copy.entries[ticket] = fresh
    }
    copy.queues = queues.map { $0.fresh() }
    copy.freeIndices = freeIndices.map { $0 }
    for (id, index) in queueIndices { copy.queueIndices[id] = index }
    for ticket in permitted { copy.permitted.insert(ticket) }
    (copy.nextTicket, copy.waitingCount) = (nextTicket, waitingCount)
    return copy
  }

  /// Returns the remedy for a deadlock. The remedy is empty if there is no deadlock.
  ///
  /// The method finishes every entry that can finish, in a copy of the table. The remaining entries wait for each
  /// other.
  func remedy() -> Remedy {
    var rest = self
    rest.ignoresThrottles = true
    var memberCounts: [Ticket: Int] = [:]
    for entry in entries.values { for enclosing in entry.enclosing { memberCounts[enclosing, default: 0] += 1 } }
    rest.finishAll(&memberCounts, startingWith: Array(entries.keys))
    var remedy = Remedy()
    if rest.waitingCount == 0 { return remedy }
    let members = rest.entries.filter { $1.state == .waiting && !$1.enclosing.isEmpty }.keys.sorted()
    remedy.preferred = members.filter { rest.waitsForOrderOnly($0) }
    if remedy.preferred.isEmpty { remedy.refused = members.last { rest.waitsForOwnGroup($0) } }
    return remedy
  }

  mutating func apply(_ remedy: Remedy, _ effects: inout Effects) {
    // There may be another deadlock.
    mayDeadlock = true
    for ticket in remedy.preferred {
      guard let entry = entries[ticket] else { continue }
      for claim in entry.claims {
        guard let first = firstWaiter(of: claim.queue), first != ticket else { continue }
        entries[first]?.yieldsTo.formUnion(entry.enclosing)
      }
    }
    prefer(remedy.preferred, &effects)
    guard let ticket = remedy.refused, let entry = entries[ticket], entry.state == .waiting else { return }
    for claim in entry.claims {
      guard !admits(claim), let holder = queues[claim.queue].holders.first else { continue }
      let key = queues[claim.queue].id.key
      effects.refused.append(Refusal(claimant: entry.claimant, key: key, holder: entries[holder]?.claimant))
      return
    }
  }

  private mutating func prefer(_ tickets: [Ticket], _ effects: inout Effects) {
    var claims: [Claim] = []
    for ticket in tickets {
      guard let entry = entries[ticket], entry.state == .waiting, !entry.isPreferred else { continue }
      if entry.isDeferred { requeueDeferred(of: entry) }
      enqueue(ticket, preferred: true)
      claims += entry.claims
    }
    grantAll(startingWith: claims, &effects)
  }

  /// Removes every entry that does not wait and has no members left.
  private mutating func finishAll(_ memberCounts: inout [Ticket: Int], startingWith tickets: [Ticket]) {
    var pending = tickets
    while let ticket = pending.popLast() {
      guard let entry = entries[ticket], memberCounts[ticket] ?? 0 == 0 else { continue }
      // A deferred entry waits for a slot, not for a key.
      guard entry.state != .waiting || entry.isDeferred || isReplaced(entry) else { continue }
      var effects = Effects()
      leave(ticket, &effects)
      pending += effects.grants.map { $0.ticket }
      for enclosing in entry.enclosing {
        memberCounts[enclosing]? -= 1
        pending.append(enclosing)
      }
    }
  }

  /// Records that entries and their members are about to be cancelled, so they do not wait for keys.
  mutating func replace(_ tickets: [Ticket]) {
    for ticket in tickets {
      guard let entry = entries[ticket], !entry.isReplaced else { continue }
      entries[ticket]?.isReplaced = true
      guard entry.state == .permitted || entry.state == .holding else { continue }
      for claim in entry.claims { queues[claim.queue].replacedCount += 1 }
    }
  }

  private func isReplaced(_ entry: Entry) -> Bool {
    entry.isReplaced || entry.enclosing.contains { entries[$0]?.isReplaced == true }
  }

  /// Whether the keys of a waiting entry are free, so that it waits only for the waiters before it.
  private func waitsForOrderOnly(_ ticket: Ticket) -> Bool {
    guard let entry = entries[ticket], !entry.isPreferred else { return false }
    return entry.claims.allSatisfy(admits)
  }

  /// Whether a waiting entry waits, directly or indirectly, for an operation that encloses it.
  private func waitsForOwnGroup(_ ticket: Ticket) -> Bool {
    guard let start = entries[ticket] else { return false }
    var members: [Ticket: [Ticket]] = [:]
    for (ticket, entry) in entries where entry.state == .waiting {
      for enclosing in entry.enclosing { members[enclosing, default: []].append(ticket) }
    }
    var seen: Set<Ticket> = [ticket]
    var toVisit = [ticket]
    while let next = toVisit.popLast() {
      guard let entry = entries[next] else { continue }
      var following = entry.state == .waiting ? [] : members[next] ?? []
      if entry.state == .waiting {
        for claim in entry.claims where !admits(claim) { following += queues[claim.queue].holders }
      }
      for other in following where seen.insert(other).inserted {
        if start.enclosing.contains(other) { return true }
        toVisit.append(other)
      }
    }
    return false
  }
}
