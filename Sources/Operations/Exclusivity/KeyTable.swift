struct KeyClaim {
  let domain: ExclusivityDomain
  let key: ExclusivityKey
  var limit = Int.max
  var throttles: [KeyThrottle] = []
  var policy = ExclusivityPolicy.wait

  var id: KeyQueue.ID { KeyQueue.ID(domain: domain, key: key) }
}

/// The progress of an operation towards its keys.
enum KeyState: Hashable {
  case waiting
  /// Waits before all others, because they wait for an operation that encloses this one.
  case preferred
  /// Waits behind an overdue operation of the same queue or group. Other operations pass it.
  case deferred
  /// The keys are reserved until this epoch, before which the queue or group must start the operation.
  case permitted(until: Int)
  /// Was not started in time. Other operations pass it until it is started.
  case overdue
  case holding
  /// Holds its keys, but is about to be cancelled because a newer operation replaces it.
  case replaced

  var isWaiting: Bool {
    switch self {
    case .waiting, .preferred, .deferred: true
    case .permitted, .overdue, .holding, .replaced: false
    }
  }

  var isHolding: Bool { self == .holding || self == .replaced }
}

/// The operations that hold keys, and the operations that wait for keys.
///
/// An operation enters the wait queues of all its keys at once. It is granted its keys when it is the first waiter for
/// each key, and each key admits another holder. The order in which operations name their keys therefore never causes a
/// deadlock, and no operation starves.
///
/// Before an operation has been started, a grant is only a permit: the keys are reserved, and the operation holds them
/// when its queue or group starts it. A full or suspended queue may not do so, so a permit ends after a while.
struct KeyTable<Claimant> {
  typealias Ticket = Int

  struct Claim {
    let queue: Int
    let limit: Int
    var throttles: [KeyThrottle]
  }

  struct Entry {
    let claimant: Claimant
    var claims: [Claim]
    /// The entries of the enclosing operations, innermost first.
    let enclosing: [Ticket]
    /// The queue or group that starts the operation. Nil if it has been started.
    var host: ObjectIdentifier?
    var state = KeyState.waiting
    /// The number of ticks for which a permit is valid. It grows each time the entry becomes overdue, so that an operation
    /// whose group is always busy starts at some time.
    var patience = 2
    /// Holders whose members are served before the entry. A search has found that the entry, which waits for these
    /// holders indirectly, would otherwise be part of a deadlock.
    var yieldsTo: Set<Ticket> = []
  }

  /// A start that must leave the window of a throttle before an entry can proceed.
  struct Delay {
    let ticket: Ticket
    /// The index of the entry's claim.
    let claim: Int
    /// The index of the claim's throttle.
    let throttle: Int
    let interval: Duration
    let start: KeyStart
  }

  /// What the caller must do after releasing the lock, in the order of the effects.
  enum Effect {
    case permit(Claimant)
    /// The operation, which was started without its keys, holds them now.
    case resume(Claimant)
    /// The operation starts, and must read its clock for this start.
    case time(KeyStart, Claimant)
    case wait(Claimant, Delay)
    case cancel(Claimant)
    /// The operation must be cancelled, because another one has the key.
    case drop(Claimant, ExclusivityKey, owner: Claimant)
    /// The operation must be cancelled, because it would wait forever.
    case refuse(Claimant, ExclusivityKey, holder: Claimant?)
    /// The keys are no longer in use. Their values may hold the last references to objects of the program.
    case release([KeyQueue.ID])
  }

  var entries: [Ticket: Entry] = [:]
  /// The queues in use, at their indices, and vacant queues.
  var queues: [KeyQueue] = []
  private var freeIndices: [Int] = []
  private(set) var queueIndices: [KeyQueue.ID: Int] = [:]
  var logs: [KeyQueue.ID: StartLog] = [:]
  private var nextTicket = 0
  var startCount = 0
  private(set) var epoch = 0
  var permitted: Set<Ticket> = []
  var waitingCount = 0
  /// Whether a change since the last search may have closed a deadlock.
  var mayDeadlock = false
  /// The indices of queues whose first waiter may be grantable.
  var queuesToServe: [Int] = []

  // MARK: Entering

  /// Applies the policies of an operation and enters all its queues. Returns nil if the operation is dropped.
  mutating func enter(
    _ claimant: Claimant,
    _ requested: [KeyClaim],
    inside enclosing: [Ticket],
    host: ObjectIdentifier?,
    _ effects: inout [Effect]
  ) -> Ticket? {
    for claim in requested where claim.policy == .drop {
      guard let owner = self.claimant(of: queueID(of: claim, inside: enclosing)) else { continue }
      effects.append(.drop(claimant, claim.key, owner: owner))
      return nil
    }
    let replacing = requested.filter { $0.policy == .replace || $0.policy == .latest }
    if !replacing.isEmpty {
      replace(replacing.map { (queueID(of: $0, inside: enclosing), $0.policy == .replace) }, &effects)
    }
    let ticket = nextTicket
    nextTicket += 1
    let claims = requested.map { claim in
      Claim(queue: index(of: queueID(of: claim, inside: enclosing)), limit: claim.limit, throttles: claim.throttles)
    }
    entries[ticket] = Entry(claimant: claimant, claims: claims, enclosing: enclosing, host: host)
    waitingCount += 1
    for claim in claims { queues[claim.queue].claimCount += 1 }
    let isFree = claims.allSatisfy { queues[$0.queue].isUndisputed && admits($0) }
    if isFree, isOpen(ticket, &effects) {
      grant(ticket, &effects)
      return ticket
    }
    if !enclosing.isEmpty { mayDeadlock = true }
    if shouldPrefer(ticket) {
      prefer(ticket)
    } else {
      for claim in claims { queues[claim.queue].waiting.append(ticket) }
    }
    if isGrantable(ticket, &effects) { grant(ticket, &effects) }
    serve(&effects, newcomer: ticket)
    return ticket
  }

  /// Returns the queue of the innermost enclosing holder of a key or, without such a holder, the outermost queue.
  func queueID(of claim: KeyClaim, inside enclosing: [Ticket]) -> KeyQueue.ID {
    for ticket in enclosing {
      guard let entry = entries[ticket], entry.state.isHolding else { continue }
      if has(entry, claim.key, in: claim.domain) {
        return KeyQueue.ID(domain: claim.domain, key: claim.key, holder: ticket)
      }
    }
    return claim.id
  }

  private mutating func index(of id: KeyQueue.ID) -> Int {
    let new = freeIndices.last ?? queues.count
    // In place, because a lookup and an insertion would hash the key twice.
    let index = { (index: inout Int) in index }(&queueIndices[id, default: new])
    if index != new { return index }
    if freeIndices.popLast() == nil { queues.append(KeyQueue(id)) } else { queues[index] = KeyQueue(id) }
    return index
  }

  /// Whether the first waiter in one of the queues of an entry waits for an operation that encloses the entry.
  private mutating func shouldPrefer(_ ticket: Ticket) -> Bool {
    guard let entry = entries[ticket], !entry.enclosing.isEmpty else { return false }
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

  /// Replaces the waiters of these queues, which leave the table at once, and the holders of some.
  private mutating func replace(_ ids: [(id: KeyQueue.ID, andHolders: Bool)], _ effects: inout [Effect]) {
    var tickets: Set<Ticket> = []
    for (id, andHolders) in ids {
      guard let queue = queueIndices[id].map({ queues[$0] }) else { continue }
      // Without this check, n operations that replace each other would read n replaced holders each.
      if andHolders, queue.replacedCount < queue.holders.count { tickets.formUnion(queue.holders) }
      tickets.formUnion(queue.preferred.all.filter { entries[$0]?.state == .preferred })
      tickets.formUnion(queue.waiting.all.filter { entries[$0]?.state == .waiting })
      for passed in [queue.overdue, queue.deferred] { for others in passed.values { tickets.formUnion(others) } }
    }
    var removed: [Entry] = []
    for ticket in tickets.sorted(by: >) {
      guard let entry = entries[ticket], entry.state != .replaced else { continue }
      effects.append(.cancel(entry.claimant))
      if entry.state == .holding {
        entries[ticket]?.state = .replaced
        for claim in entry.claims { queues[claim.queue].replacedCount += 1 }
      } else {
        entries[ticket] = nil
        didRemove(ticket, entry)
        removed.append(entry)
      }
    }
    serve(&effects)
    for entry in removed { removeClaims(of: entry, &effects) }
  }

  // MARK: Starting

  /// Records that an operation is about to execute, and returns whether it holds its keys.
  ///
  /// - Parameter waits: Whether the operation stays started while it waits. Otherwise it is permitted again later.
  mutating func start(_ ticket: Ticket, waits: Bool, _ effects: inout [Effect]) -> Bool {
    guard var entry = entries[ticket] else { return false }
    switch entry.state {
    case .holding, .replaced: return true
    case .permitted:
      endPermit(ticket, entry)
      (entry.state, entry.host) = (.holding, nil)
      entries[ticket] = entry
      noteStart(of: entry, &effects)
      serve(&effects)
      return true
    case .waiting, .preferred:
      if waits { entries[ticket]?.host = nil }
      return false
    case .deferred: requeue([ticket])
    case .overdue:
      entries[ticket]?.patience = min(entry.patience * 4, Self.longestPatience)
      waitingCount += 1
      requeue(endOverdue(ticket, entry) + [ticket])
    }
    // The operation is being started, so a grant is no permit.
    entries[ticket]?.host = nil
    queuesToServe += entry.claims.map(\.queue)
    serve(&effects, newcomer: ticket)
    if entries[ticket]?.state == .holding { return true }
    if !waits { entries[ticket]?.host = entry.host }
    return false
  }

  // MARK: Time

  var needsTick: Bool { waitingCount > 0 && (!permitted.isEmpty || mayDeadlock) }

  /// About ten seconds.
  private static var longestPatience: Int { 512 }

  /// Ends a period. Entries whose permits are no longer valid become overdue.
  mutating func tick(_ effects: inout [Effect]) {
    epoch += 1
    for ticket in permitted.sorted() {
      guard let entry = entries[ticket], case .permitted(let end) = entry.state, epoch >= end else { continue }
      endPermit(ticket, entry)
      releaseKeys(of: ticket, entry)
      entries[ticket]?.state = .overdue
      guard let host = entry.host else { continue }
      for claim in entry.claims { queues[claim.queue].overdue[host, default: []].insert(ticket) }
    }
    serve(&effects)
  }

  // MARK: Leaving

  mutating func leave(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard let entry = entries.removeValue(forKey: ticket) else { return }
    didRemove(ticket, entry)
    serve(&effects)
    removeClaims(of: entry, &effects)
  }

  private mutating func didRemove(_ ticket: Ticket, _ entry: Entry) {
    switch entry.state {
    // The tickets stay in the wait queues until these are served.
    case .waiting, .preferred: waitingCount -= 1
    case .deferred:
      waitingCount -= 1
      guard let host = entry.host else { break }
      for claim in entry.claims { queues[claim.queue].deferred[host]?.remove(ticket) }
    case .overdue: requeue(endOverdue(ticket, entry))
    case .permitted:
      endPermit(ticket, entry)
      return releaseKeys(of: ticket, entry)
    case .holding, .replaced: return releaseKeys(of: ticket, entry)
    }
    for claim in entry.claims { queuesToServe.append(claim.queue) }
  }

  private mutating func removeClaims(of entry: Entry, _ effects: inout [Effect]) {
    for claim in entry.claims {
      let index = claim.queue
      queues[index].claimCount -= 1
      if queues[index].claimCount == 0 {
        let id = queues[index].id
        if let position = queueIndices.index(forKey: id) {
          let equal = queueIndices.remove(at: position).key
          if id.key.hasValue { effects.append(.release([id, equal])) }
        }
        queues[index] = .vacant
        freeIndices.append(index)
      } else if queues[index].isMostlyStale {
        queues[index].preferred.removeAll { entries[$0]?.state != .preferred }
        queues[index].waiting.removeAll { entries[$0]?.state != .waiting }
      }
    }
    if queueIndices.isEmpty { (queues, freeIndices) = ([], []) }
    entries.giveBackRoom()
    queueIndices.giveBackRoom()
  }
}

extension KeyTable.Delay: Sendable where Claimant: Sendable {}
