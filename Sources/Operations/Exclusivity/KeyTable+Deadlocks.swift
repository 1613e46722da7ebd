/// Finding deadlocks of holders whose members wait for keys, and ending them.
extension KeyTable {
  /// How a deadlock ends.
  struct Remedy {
    /// Members of holders that have to go before those that wait for the holders.
    var passing: [Ticket] = []
    var refused: Ticket?
  }

  mutating func willLookForDeadlock() { mayBeStuck = false }

  /// Lets all finish that can, in a copy. What is left then waits for itself.
  func remedy() -> Remedy {
    var rest = self
    rest.ignoresThrottles = true
    var remedy = Remedy()
    var inside: [Ticket: Int] = [:]
    for entry in entries.values { for outer in entry.outer { inside[outer, default: 0] += 1 } }
    rest.drain(&inside, beginningWith: Array(entries.keys))
    if rest.waitingCount == 0 { return remedy }
    let insiders = rest.entries.filter { $1.state == .waiting && !$1.outer.isEmpty }.keys.sorted()
    remedy.passing = insiders.filter { rest.waitsForOrderOnly($0) }
    if remedy.passing.isEmpty { remedy.refused = insiders.last { rest.waitsForItsOwnGroup($0) } }
    return remedy
  }

  mutating func apply(_ remedy: Remedy, _ effects: inout Effects) {
    // There may be another deadlock behind this one.
    mayBeStuck = true
    for ticket in remedy.passing {
      guard let entry = entries[ticket] else { continue }
      for claim in entry.claims {
        if let front = front(of: claim.line), front != ticket { entries[front]?.yieldsTo.formUnion(entry.outer) }
      }
    }
    letPass(remedy.passing, &effects)
    guard let ticket = remedy.refused, let entry = entries[ticket], entry.state == .waiting else { return }
    for claim in entry.claims {
      guard let line = lines[claim.line], !line.admits(claim.limit), let holder = line.holders.first else { continue }
      effects.refused.append(
        Refusal(claimant: entry.claimant, key: line.place.key, holder: entries[holder]?.claimant)
      )
      return
    }
  }

  mutating func letPass(_ tickets: [Ticket], _ effects: inout Effects) {
    var claims: [Claim] = []
    for ticket in tickets {
      guard let entry = entries[ticket], entry.state == .waiting, !entry.isPassing else { continue }
      if entry.isAside { restore(entry) }
      enqueue(ticket, passing: true)
      claims += entry.claims
    }
    serve(claims, &effects)
  }

  /// Lets everything leave that does not wait, and inside which nothing is left.
  mutating func drain(_ inside: inout [Ticket: Int], beginningWith tickets: [Ticket]) {
    var toDo = tickets
    while let ticket = toDo.popLast() {
      guard let entry = entries[ticket], inside[ticket] ?? 0 == 0 else { continue }
      // What stands aside waits for a slot, and for no key.
      guard entry.state != .waiting || entry.isAside else { continue }
      var effects = Effects()
      leave(ticket, &effects)
      toDo += effects.steps.map(\.ticket)
      for outer in entry.outer {
        inside[outer]? -= 1
        toDo.append(outer)
      }
    }
  }

  /// Whether the keys of a waiting entry are free, and it lets others go first.
  func waitsForOrderOnly(_ ticket: Ticket) -> Bool {
    guard let entry = entries[ticket], !entry.isPassing else { return false }
    return entry.claims.allSatisfy { lines[$0.line]?.admits($0.limit) == true }
  }

  func waitsForItsOwnGroup(_ ticket: Ticket) -> Bool {
    guard let start = entries[ticket] else { return false }
    var members: [Ticket: [Ticket]] = [:]
    for (ticket, entry) in entries where entry.state == .waiting {
      for outer in entry.outer { members[outer, default: []].append(ticket) }
    }
    var seen: Set<Ticket> = [ticket]
    var toVisit = [ticket]
    while let next = toVisit.popLast() {
      guard let entry = entries[next] else { continue }
      var following = entry.state == .waiting ? [] : members[next] ?? []
      if entry.state == .waiting {
        for claim in entry.claims {
          guard let line = lines[claim.line] else { continue }
          if !line.admits(claim.limit) { following += line.holders }
        }
      }
      for other in following where seen.insert(other).inserted {
        if start.outer.contains(other) { return true }
        toVisit.append(other)
      }
    }
    return false
  }
}
