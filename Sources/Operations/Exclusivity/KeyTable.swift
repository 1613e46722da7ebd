/// The operations that hold keys, and the operations that wait for keys. The table has no side effects.
///
/// An operation enters the wait queues of all its keys at once. It is granted its keys when it is the first waiter for
/// each key, and each key admits another holder. The order in which operations name their keys therefore never causes a
/// deadlock, and no operation starves.
///
/// An operation that has been started holds its keys as soon as they are granted. Before the start, a grant makes the
/// operation *permitted*: its keys are reserved, and it holds them when its queue or group starts it. If a permitted
/// operation is not started in time, because its queue is full or suspended, it becomes *overdue*, and other operations
/// pass it.
///
/// The table reads no clock. Time passes only by calls to ``tick(_:)``.
struct KeyTable<Claimant> {
  typealias Ticket = Int
  typealias QueueID = KeyQueue.ID

  /// One key that an operation requests.
  struct Demand {
    var queue: QueueID
    var limit: Int
    var throttles: [KeyThrottle] = []
  }

  /// An operation that requests keys.
  struct Applicant {
    let claimant: Claimant
    let demands: [Demand]
    /// The entries of the enclosing operations, innermost first.
    var enclosing: [Ticket] = []
    /// The queue or group that starts the operation. Nil if it has been started.
    var host: ObjectIdentifier?
  }

  enum State: Hashable {
    case waiting
    case permitted
    case overdue
    case holding
  }

  /// One key of an entry.
  struct Claim {
    /// The index of the key's queue.
    let queue: Int
    let limit: Int
    let throttles: [KeyThrottle]
    /// The index among the queue's holders.
    var position = 0
  }

  /// An operation that holds keys or waits for them.
  struct Entry {
    let claimant: Claimant
    var claims: [Claim]
    var enclosing: [Ticket]
    let host: ObjectIdentifier?
    var state = State.waiting
    var isStarted: Bool
    /// Whether the entry is in the preferred wait queues of its keys.
    var isPreferred = false
    /// Whether the entry waits behind an overdue entry of its queue or group.
    var isDeferred = false
    /// Whether a newer operation is replacing the operation of this entry, and is about to cancel it.
    var isReplaced = false
    /// The tick in which the entry was permitted.
    var epoch = 0
    /// The number of ticks after which the permitted entry becomes overdue.
    var patience = 2
    /// The holders that the entry waits for. Their members are served before the entry.
    var yieldsTo: Set<Ticket> = []
    /// The time of the start under throttled keys, which the operation sets.
    var startTime: StartTime?

    var isThrottled: Bool { claims.contains { !$0.throttles.isEmpty } }
  }

  /// The window of a throttle under a key.
  struct Window: Hashable {
    let queue: Int
    let throttle: KeyThrottle
  }

  /// A start that must leave a window before an operation can proceed.
  struct Delay {
    let ticket: Ticket
    let claimant: Claimant
    let window: Window
    let start: StartLog.Start
  }

  /// An entry that has been granted its keys.
  struct Grant {
    let ticket: Ticket
    let claimant: Claimant
    /// Whether the operation's queue or group must start it. Otherwise the operation holds its keys and proceeds.
    let isPermit: Bool
  }

  /// A member of a holder that would wait forever.
  struct Refusal {
    let claimant: Claimant
    let key: ExclusivityKey
    let holder: Claimant?
  }

  /// What the caller must do after releasing the lock.
  struct Effects {
    var grants: [Grant] = []
    var delayed: [Delay] = []
    var refused: [Refusal] = []
  }

  var entries: [Ticket: Entry] = [:]
  /// The queues in use, at their indices, and vacant queues.
  var queues: [KeyQueue] = []
  var freeIndices: [Int] = []
  var queueIndices: [QueueID: Int] = [:]
  var logs: [QueueID: StartLog] = [:]
  /// The latest start known to have left each window, for each entry that waits for one.
  var passedStarts: [Ticket: [Window: Int]] = [:]
  var nextTicket = 0
  var nextSerial = 0
  var epoch = 0
  var permitted: Set<Ticket> = []
  var waitingCount = 0
  /// Whether a change since the last search may have closed a deadlock.
  var mayDeadlock = false
  /// Queues whose first waiter may have changed.
  var queuesToServe: [Int] = []
  /// Whether throttles have no effect, as in the copy that is searched for deadlocks. Waiting for a window is not a
  /// deadlock.
  var ignoresThrottles = false

  // MARK: Entering

  /// Enters all queues of an operation. Afterwards the entry holds its keys, is permitted, or waits.
  mutating func enter(_ applicant: Applicant, _ effects: inout Effects) -> Ticket {
    let ticket = nextTicket
    nextTicket += 1
    let claims = applicant.demands.map { demand in
      Claim(queue: index(of: demand.queue), limit: demand.limit, throttles: demand.throttles)
    }
    entries[ticket] = Entry(
      claimant: applicant.claimant,
      claims: claims,
      enclosing: applicant.enclosing,
      host: applicant.host,
      isStarted: applicant.host == nil
    )
    waitingCount += 1
    for claim in claims { queues[claim.queue].claimCount += 1 }
    let isFree = claims.allSatisfy { queues[$0.queue].isUndisputed && admits($0) }
    if isFree, isOpen(ticket, &effects) {
      grant(ticket)
      return ticket
    }
    let isPreferred = !applicant.enclosing.isEmpty && shouldPrefer(ticket)
    if !applicant.enclosing.isEmpty { mayDeadlock = true }
    enqueue(ticket, preferred: isPreferred)
    if isGrantable(ticket, &effects) { grant(ticket) }
    grantAll(startingWith: [], &effects, newcomer: ticket)
    return ticket
  }

  private mutating func index(of queue: QueueID) -> Int {
    if let index = queueIndices[queue] { return index }
    let index = freeIndices.popLast() ?? queues.count
    if index == queues.count { queues.append(KeyQueue(queue)) } else { queues[index] = KeyQueue(queue) }
    queueIndices[queue] = index
    return index
  }

  mutating func enqueue(_ ticket: Ticket, preferred isPreferred: Bool) {
    guard let claims = entries[ticket]?.claims else { return }
    entries[ticket]?.isPreferred = isPreferred
    for claim in claims {
      if isPreferred {
        queues[claim.queue].preferred.append(ticket)
      } else {
        queues[claim.queue].waiting.append(ticket)
      }
    }
  }

  /// Whether the first waiter in one of the queues of an entry waits for an operation that encloses the entry.
  private mutating func shouldPrefer(_ ticket: Ticket) -> Bool {
    guard let entry = entries[ticket] else { return false }
    for claim in entry.claims {
      guard let first = firstWaiter(of: claim.queue), let other = entries[first] else { continue }
      for enclosing in entry.enclosing {
        if other.yieldsTo.contains(enclosing) { return true }
        guard let holder = entries[enclosing] else { continue }
        if holder.claims.contains(where: { held in other.claims.contains { $0.queue == held.queue } }) { return true }
      }
    }
    return false
  }

  // MARK: Granting

  /// Returns the first waiter of a queue. Defers waiters whose queue or group has an overdue entry before them.
  mutating func firstWaiter(of queue: Int) -> Ticket? {
    while let ticket = frontWaiter(of: queue), let entry = entries[ticket] {
      guard let host = entry.host, !entry.isStarted, queues[queue].overdue[host] != nil else { return ticket }
      queues[queue].waiting.popFirst()
      queues[queue].deferred[host, default: []].append(ticket)
      entries[ticket]?.isDeferred = true
      for claim in entry.claims where claim.queue != queue { queuesToServe.append(claim.queue) }
    }
    return nil
  }

  /// Returns the first waiter of a queue that is not preferred, after removing stale tickets before it.
  mutating func frontWaiter(of queue: Int) -> Ticket? {
    while let ticket = queues[queue].waiting.first {
      if isWaiting(ticket, preferred: false) { return ticket }
      queues[queue].removeFirstWaiting()
    }
    return nil
  }

  /// Grants every entry that can proceed, starting with the queues of these claims.
  ///
  /// - Parameter newcomer: An entry for which no `Grant` is added, because the caller reads its state.
  mutating func grantAll(startingWith claims: [Claim], _ effects: inout Effects, newcomer: Ticket? = nil) {
    for claim in claims { queuesToServe.append(claim.queue) }
    while let queue = queuesToServe.popLast() {
      while let ticket = nextGrantable(in: queue, &effects) {
        grant(ticket)
        guard let entry = entries[ticket] else { continue }
        if ticket != newcomer {
          effects.grants.append(Grant(ticket: ticket, claimant: entry.claimant, isPermit: entry.state == .permitted))
        }
        for claim in entry.claims where claim.queue != queue { queuesToServe.append(claim.queue) }
      }
    }
  }

  private mutating func nextGrantable(in queue: Int, _ effects: inout Effects) -> Ticket? {
    guard queues[queue].hasWaiters, queues[queue].admits(.max) else { return nil }
    trimPreferred(of: queue)
    // Preferred waiters do not wait for each other: the keys of one may be held by an operation that encloses another.
    for ticket in queues[queue].preferred.all where isWaiting(ticket, preferred: true) {
      if isGrantable(ticket, &effects) { return ticket }
    }
    guard let ticket = firstWaiter(of: queue), isGrantable(ticket, &effects) else { return nil }
    return ticket
  }

  mutating func trimPreferred(of queue: Int) {
    while let ticket = queues[queue].preferred.first, !isWaiting(ticket, preferred: true) {
      queues[queue].removeFirstPreferred()
    }
  }

  private mutating func isGrantable(_ ticket: Ticket, _ effects: inout Effects) -> Bool {
    guard let entry = entries[ticket], !entry.isDeferred else { return false }
    for claim in entry.claims {
      guard admits(claim) else { return false }
      if entry.isPreferred { continue }
      trimPreferred(of: claim.queue)
      guard queues[claim.queue].preferred.isEmpty, firstWaiter(of: claim.queue) == ticket else { return false }
    }
    return isOpen(ticket, &effects)
  }

  /// Whether a key has room for another holder.
  func admits(_ claim: Claim) -> Bool { queues[claim.queue].admits(claim.limit) }

  /// Gives an entry its keys, or reserves them if the entry has not been started.
  mutating func grant(_ ticket: Ticket) {
    guard var entry = entries.removeValue(forKey: ticket) else { return }
    entry.state = entry.isStarted ? .holding : .permitted
    entry.epoch = epoch
    (entry.isPreferred, entry.isDeferred) = (false, false)
    waitingCount -= 1
    if !entry.isStarted { permitted.insert(ticket) }
    for index in entry.claims.indices {
      let claim = entry.claims[index]
      entry.claims[index].position = queues[claim.queue].add(holder: ticket, limit: claim.limit)
      if entry.isReplaced { queues[claim.queue].replacedCount += 1 }
      if queues[claim.queue].waiting.first == ticket { queues[claim.queue].waiting.popFirst() }
    }
    entries[ticket] = entry
    if entry.isStarted { noteStart(of: ticket) } else { reserveStart(of: entry) }
  }

  func isWaiting(_ ticket: Ticket, preferred isPreferred: Bool) -> Bool {
    guard let entry = entries[ticket] else { return false }
    return entry.state == .waiting && entry.isPreferred == isPreferred && !entry.isDeferred
  }

  // MARK: Releasing

  /// Releases the keys of an entry, or removes it from the wait queues.
  mutating func leave(_ ticket: Ticket, _ effects: inout Effects) {
    guard let entry = entries.removeValue(forKey: ticket) else { return }
    if !passedStarts.isEmpty { passedStarts[ticket] = nil }
    switch entry.state {
    case .waiting:
      waitingCount -= 1
      for claim in entry.claims where !entry.isDeferred { noteStaleTicket(in: claim.queue) }
    case .overdue: endOverdue(ticket, entry)
    case .permitted:
      permitted.remove(ticket)
      endReservation(of: entry)
      releaseKeys(of: entry)
    case .holding: releaseKeys(of: entry)
    }
    grantAll(startingWith: entry.claims, &effects)
    for claim in entry.claims { removeClaim(from: claim.queue) }
    entries.giveBackRoom()
    queueIndices.giveBackRoom()
  }

  mutating func releaseKeys(of entry: Entry) {
    for claim in entry.claims {
      if entry.isReplaced { queues[claim.queue].replacedCount -= 1 }
      // The last holder moves to the vacant position.
      guard let moved = queues[claim.queue].removeHolder(at: claim.position, limit: claim.limit) else { continue }
      if let index = entries[moved]?.claims.firstIndex(where: { $0.queue == claim.queue }) {
        entries[moved]?.claims[index].position = claim.position
      }
    }
  }

  /// Counts a ticket that stays in a wait queue after its entry has left. Removes such tickets when they are the
  /// majority.
  private mutating func noteStaleTicket(in index: Int) {
    queues[index].staleCount += 1
    guard queues[index].staleCount >= 32, queues[index].isMostlyStale else { return }
    var queue = queues[index]
    queue.preferred.removeAll { !isWaiting($0, preferred: true) }
    queue.waiting.removeAll { !isWaiting($0, preferred: false) }
    queue.staleCount = 0
    queues[index] = queue
  }

  private mutating func removeClaim(from index: Int) {
    queues[index].claimCount -= 1
    guard queues[index].claimCount == 0 else { return }
    queueIndices[queues[index].id] = nil
    queues[index] = .vacant
    freeIndices.append(index)
    if queueIndices.isEmpty { (queues, freeIndices) = ([], []) }
  }
}

extension KeyTable.Delay: Sendable where Claimant: Sendable {}
