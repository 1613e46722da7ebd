/// Starting permitted operations, and passing over operations that are not started in time.
extension KeyTable {
  /// Records that an operation is about to execute.
  ///
  /// - Parameter waits: Whether the operation stays started while it waits for its keys. Otherwise it is permitted
  ///   again later.
  /// - Returns: Whether the operation holds its keys.
  mutating func start(_ ticket: Ticket, waits: Bool, _ effects: inout Effects) -> Bool {
    guard let entry = entries[ticket] else { return false }
    switch entry.state {
    case .holding: return true
    case .permitted:
      hold(ticket)
      return true
    case .waiting:
      if waits {
        entries[ticket]?.isStarted = true
        if entry.isDeferred { requeueDeferred(of: entry) }
      }
    case .overdue:
      entries[ticket]?.state = .waiting
      if waits { entries[ticket]?.isStarted = true }
      waitingCount += 1
      mayDeadlock = true
      // The entry was permitted before all current waiters.
      let isFree = entry.claims.allSatisfy(admits)
      if isFree, isOpen(ticket, &effects) {
        entries[ticket]?.isStarted = true
        grant(ticket)
        endOverdue(entry, requeueing: nil)
        return true
      }
      endOverdue(entry, requeueing: ticket)
    }
    grantAll(startingWith: entry.claims, &effects, newcomer: ticket)
    if entries[ticket]?.state == .permitted { hold(ticket) }
    return entries[ticket]?.state == .holding
  }

  /// Gives a permitted entry the keys that are reserved for it.
  private mutating func hold(_ ticket: Ticket) {
    permitted.remove(ticket)
    entries[ticket]?.state = .holding
  }

  /// Removes an entry from the overdue entries, and requeues the waiters that were deferred because of it.
  ///
  /// - Parameter ticket: The ticket of the entry, if the entry waits again.
  mutating func endOverdue(_ entry: Entry, requeueing ticket: Ticket?) {
    guard let host = entry.host else { return }
    for claim in entry.claims {
      let others = (queues[claim.queue].overdue[host] ?? []).filter { $0 != ticket && entries[$0]?.state == .overdue }
      queues[claim.queue].overdue[host] = others.isEmpty ? nil : others
    }
    requeueDeferred(of: entry)
    guard let ticket else { return }
    for claim in entry.claims { requeue([ticket], in: claim.queue) }
  }

  /// Requeues the waiters that are deferred in the queues of an entry and have the same host.
  mutating func requeueDeferred(of entry: Entry) {
    guard let host = entry.host else { return }
    var requeued: [Int: [Ticket]] = [:]
    for claim in entry.claims {
      for ticket in queues[claim.queue].deferred.removeValue(forKey: host) ?? []
      where entries[ticket]?.isDeferred == true {
        entries[ticket]?.isDeferred = false
        for claim in entries[ticket]?.claims ?? [] { requeued[claim.queue, default: []].append(ticket) }
      }
    }
    for (queue, tickets) in requeued { requeue(tickets, in: queue) }
  }

  /// Inserts waiters in the order of their arrival.
  private mutating func requeue(_ tickets: [Ticket], in queue: Int) {
    let all = Set(tickets).union(queues[queue].waiting.all).filter { isWaiting($0, preferred: false) }
    queues[queue].waiting = ArrayDeque(all.sorted())
    queues[queue].staleCount = 0
    mayDeadlock = true
  }

  // MARK: Time

  /// Whether ``tick(_:)`` or a search for deadlocks may change anything.
  var needsTick: Bool { waitingCount > 0 && (!permitted.isEmpty || mayDeadlock) }

  /// Ends a period. Entries that were permitted two periods ago and not started become overdue, and release the keys
  /// reserved for them.
  mutating func tick(_ effects: inout Effects) {
    epoch += 1
    var overdue: [Entry] = []
    for ticket in permitted.sorted() {
      guard let entry = entries[ticket], let host = entry.host, epoch - entry.epoch >= 2 else { continue }
      overdue.append(entry)
      permitted.remove(ticket)
      forgetStart(of: entry)
      releaseKeys(of: entry)
      entries[ticket]?.state = .overdue
      entries[ticket]?.startSerial = nil
      for claim in entry.claims { queues[claim.queue].overdue[host, default: []].append(ticket) }
    }
    for entry in overdue { grantAll(startingWith: entry.claims, &effects) }
  }
}
