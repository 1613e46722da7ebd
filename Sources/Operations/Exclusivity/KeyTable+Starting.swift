/// Starting permitted operations, and passing over operations that are not started in time.
extension KeyTable {
  /// Records that an operation is about to execute.
  ///
  /// - Parameter waits: Whether the operation stays started while it waits for its keys. Otherwise it is permitted
  ///   again later.
  /// - Returns: Whether the operation holds its keys.
  mutating func start(_ ticket: Ticket, waits: Bool, _ effects: inout Effects) -> Bool {
    guard let entry = entries[ticket] else { return false }
    var freed: [Claim] = []
    switch entry.state {
    case .holding: return true
    case .permitted: hold(ticket)
    case .waiting:
      if waits {
        entries[ticket]?.isStarted = true
        if entry.isDeferred { requeueDeferred(of: entry) }
        freed = entry.claims
      }
    case .overdue:
      entries[ticket]?.state = .waiting
      entries[ticket]?.patience = min(entry.patience * 4, Self.longestPatience)
      if waits { entries[ticket]?.isStarted = true }
      waitingCount += 1
      mayDeadlock = true
      // The entry was permitted before all current waiters.
      let isFree = entry.claims.allSatisfy(admits)
      if isFree, isOpen(ticket, &effects) {
        entries[ticket]?.isStarted = true
        grant(ticket)
        endOverdue(ticket, entry)
      } else {
        endOverdue(ticket, entry)
        for claim in entry.claims { requeue([ticket], in: claim.queue) }
      }
      freed = entry.claims
    }
    grantAll(startingWith: freed, &effects, newcomer: ticket)
    if entries[ticket]?.state == .permitted { hold(ticket) }
    return entries[ticket]?.state == .holding
  }

  /// Gives a permitted entry the keys that are reserved for it.
  private mutating func hold(_ ticket: Ticket) {
    permitted.remove(ticket)
    entries[ticket]?.state = .holding
    if let entry = entries[ticket] { endReservation(of: entry) }
    noteStart(of: ticket)
  }

  /// Removes an entry from the overdue entries, and requeues the waiters that were deferred because of it.
  mutating func endOverdue(_ ticket: Ticket, _ entry: Entry) {
    guard let host = entry.host else { return }
    for claim in entry.claims {
      queues[claim.queue].overdue[host]?.remove(ticket)
      if queues[claim.queue].overdue[host]?.isEmpty == true { queues[claim.queue].overdue[host] = nil }
    }
    requeueDeferred(of: host, in: entry.claims.map(\.queue).filter { queues[$0].overdue[host] == nil })
  }

  /// Requeues the waiters that are deferred in the queues of an entry and have the same host.
  mutating func requeueDeferred(of entry: Entry) {
    if let host = entry.host { requeueDeferred(of: host, in: entry.claims.map(\.queue)) }
  }

  private mutating func requeueDeferred(of host: ObjectIdentifier, in deferring: [Int]) {
    var requeued: [Int: [Ticket]] = [:]
    for queue in deferring {
      for ticket in queues[queue].deferred.removeValue(forKey: host) ?? []
      where entries[ticket]?.isDeferred == true {
        entries[ticket]?.isDeferred = false
        for claim in entries[ticket]?.claims ?? [] { requeued[claim.queue, default: []].append(ticket) }
      }
    }
    for (queue, tickets) in requeued { requeue(tickets, in: queue) }
  }

  /// Inserts waiters in the order of their arrival.
  private mutating func requeue(_ tickets: [Ticket], in queue: Int) {
    mayDeadlock = true
    let tickets = tickets.sorted()
    if let last = tickets.last, last < queues[queue].waiting.first ?? .max {
      return queues[queue].waiting.prepend(tickets)
    }
    let all = Set(tickets).union(queues[queue].waiting.all).filter { isWaiting($0, preferred: false) }
    queues[queue].waiting = ArrayDeque(all.sorted())
    queues[queue].staleCount = 0
  }

  // MARK: Time

  /// Whether ``tick(_:)`` or a search for deadlocks may change anything.
  var needsTick: Bool { waitingCount > 0 && (!permitted.isEmpty || mayDeadlock) }

  /// The largest number of ticks for which keys are reserved, about ten seconds. The number grows with each time that
  /// an entry is overdue, so that an operation whose group is always busy starts at some time.
  private static var longestPatience: Int { 512 }

  /// Ends a period. Entries that were permitted ``Entry/patience`` periods ago and not started become overdue, and
  /// release the keys reserved for them.
  mutating func tick(_ effects: inout Effects) {
    epoch += 1
    var overdue: [Entry] = []
    for ticket in permitted.sorted() {
      guard let entry = entries[ticket], let host = entry.host, epoch - entry.epoch >= entry.patience else { continue }
      overdue.append(entry)
      permitted.remove(ticket)
      endReservation(of: entry)
      releaseKeys(of: entry)
      entries[ticket]?.state = .overdue
      for claim in entry.claims { queues[claim.queue].overdue[host, default: []].insert(ticket) }
    }
    for entry in overdue { grantAll(startingWith: entry.claims, &effects) }
  }
}
