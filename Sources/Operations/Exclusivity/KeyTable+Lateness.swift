/// Entries that are called, and start late or never because their queue is full or suspended.
extension KeyTable {
  /// The operation is about to execute.
  ///
  /// - Parameter waits: Whether it is in hand from now on. Otherwise it is called when its turn comes.
  /// - Returns: Whether it holds its keys.
  mutating func arrive(_ ticket: Ticket, waits: Bool, _ effects: inout Effects) -> Bool {
    guard let entry = entries[ticket] else { return false }
    switch entry.state {
    case .holding: return true
    case .called:
      calledCount -= 1
      entries[ticket]?.state = .holding
      return true
    case .waiting:
      if waits {
        entries[ticket]?.isInHand = true
        if entry.isAside { restore(entry) }
      }
    case .late:
      entries[ticket]?.state = .waiting
      if waits { entries[ticket]?.isInHand = true }
      waitingCount += 1
      mayBeStuck = true
      // It has been called before all that wait now.
      let isFree = entry.claims.allSatisfy { lines[$0.line]?.admits($0.limit) == true }
      if isFree, isOpen(ticket, &effects) {
        entries[ticket]?.isInHand = true
        take(ticket)
        endLateness(of: entry, adding: nil)
        return true
      }
      endLateness(of: entry, adding: ticket)
    }
    serve(entry.claims, &effects, newcomer: ticket)
    if entries[ticket]?.state == .called {
      calledCount -= 1
      entries[ticket]?.state = .holding
    }
    return entries[ticket]?.state == .holding
  }

  /// Puts those back that stood aside because of the entry, and perhaps itself.
  mutating func endLateness(of entry: Entry, adding ticket: Ticket?) {
    guard let home = entry.home else { return }
    for claim in entry.claims {
      let others = (lines[claim.line]?.late[home] ?? []).filter { $0 != ticket && entries[$0]?.state == .late }
      lines[claim.line]?.late[home] = others.isEmpty ? nil : others
    }
    restore(entry)
    guard let ticket else { return }
    for claim in entry.claims { insert([ticket], into: claim.line) }
  }

  /// Puts those back that stand aside in the lines of the entry, in their places.
  mutating func restore(_ entry: Entry) {
    guard let home = entry.home else { return }
    var back: [Int: [Ticket]] = [:]
    for claim in entry.claims {
      for ticket in lines[claim.line]?.aside.removeValue(forKey: home) ?? [] where entries[ticket]?.isAside == true {
        entries[ticket]?.isAside = false
        for claim in entries[ticket]?.claims ?? [] { back[claim.line, default: []].append(ticket) }
      }
    }
    for (line, tickets) in back { insert(tickets, into: line) }
  }

  mutating func insert(_ tickets: [Ticket], into line: Int) {
    guard let waiting = lines[line]?.waiting else { return }
    let all = Set(tickets + waiting.all).filter { isWaiting($0, passing: false) }
    lines[line]?.waiting = TicketQueue(all.sorted())
    mayBeStuck = true
    lines[line]?.staleCount = 0
  }

  /// Whether the time matters: something has been called that others wait behind, or a deadlock is possible.
  var needsTick: Bool { waitingCount > 0 && (calledCount > 0 || mayBeStuck) }

  /// How many ticks ago the entry was called.
  func age(of entry: Entry) -> Int { epoch - entry.epoch }

  /// A while has passed. What has been called two of them ago, and has not arrived, lets others go first.
  mutating func tick(_ effects: inout Effects) {
    epoch += 1
    if calledCount == 0 { return }
    let late = entries.filter { $1.state == .called && epoch - $1.epoch >= 2 }
    for ticket in late.keys.sorted() {
      guard let entry = entries[ticket], let home = entry.home else { continue }
      calledCount -= 1
      forgetStart(of: entry)
      release(entry)
      entries[ticket]?.state = .late
      entries[ticket]?.startSerial = nil
      for claim in entry.claims { lines[claim.line]?.late[home, default: []].append(ticket) }
    }
    for (_, entry) in late { serve(entry.claims, &effects) }
  }
}
