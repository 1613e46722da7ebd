/// Reading the table, for policies, reports and debugging.
extension KeyTable {
  /// Returns the queue in which an operation waits for a key. This is the queue of the innermost enclosing holder of
  /// the key or, without such a holder, the outermost queue.
  func queueID(of key: ExclusivityKey, in domain: ExclusivityDomain, inside enclosing: [Ticket]) -> QueueID {
    for ticket in enclosing {
      guard let entry = entries[ticket], entry.state == .holding else { continue }
      if claims(entry, key, in: domain) { return QueueID(domain: domain, key: key, holder: ticket) }
    }
    return QueueID(domain: domain, key: key)
  }

  /// Whether an entry claims a key, outside of all holders or inside one.
  func claims(_ entry: Entry, _ key: ExclusivityKey, in domain: ExclusivityDomain) -> Bool {
    entry.claims.contains { claim in
      queues[claim.queue].id.key == key && queues[claim.queue].id.domain === domain
    }
  }

  /// Returns the entries of a key, in the order of arrival.
  func tickets(of key: ExclusivityKey, in domain: ExclusivityDomain) -> [Ticket] {
    entries.filter { claims($1, key, in: domain) }.keys.sorted()
  }

  /// Returns the holders and waiters of these queues that no newer operation has replaced, in the order of arrival.
  func replaceable(in ids: [QueueID]) -> [Ticket] {
    var result: Set<Ticket> = []
    for id in ids {
      guard let index = queueIndices[id] else { continue }
      let queue = queues[index]
      if queue.replacedCount < queue.holders.count { result.formUnion(queue.holders) }
      result.formUnion(queue.waiters)
      for overdue in queue.overdue.values { result.formUnion(overdue) }
      for deferred in queue.deferred.values { result.formUnion(deferred) }
    }
    return result.filter { entries[$0]?.isReplaced == false }.sorted()
  }

  /// Returns an operation that has a key: a holder or, without one, an operation that waits for the key.
  mutating func claimant(of id: QueueID) -> Claimant? {
    guard let index = queueIndices[id] else { return nil }
    trimPreferred(of: index)
    let queue = queues[index]
    let ticket =
      queue.holders.first ?? queue.preferred.first ?? queue.overdue.values.first?.first ?? frontWaiter(of: index)
      ?? queue.deferred.values.lazy.joined().first { entries[$0] != nil }
    return ticket.flatMap { entries[$0]?.claimant }
  }

  /// Returns a holder of a queue.
  func holder(of id: QueueID) -> Claimant? {
    queueIndices[id].flatMap { queues[$0].holders.first }.flatMap { entries[$0]?.claimant }
  }

  /// What keeps entries from a key: its holders or, if the key admits another holder, the first waiter.
  struct Obstacle: Hashable {
    let queue: QueueID
    let isFull: Bool
  }

  /// Returns the obstacle of a waiting entry for each of its keys, and the number of holders that the key admits. The
  /// entry itself may be the first waiter.
  func obstacles(of ticket: Ticket) -> [(obstacle: Obstacle, limit: Int)] {
    guard let entry = entries[ticket], entry.state == .waiting else { return [] }
    return entry.claims.map { claim in
      let queue = queues[claim.queue]
      let obstacle = Obstacle(queue: queue.id, isFull: !queue.admits(claim.limit))
      return (obstacle, min(claim.limit, queue.smallestLimit))
    }
  }

  /// Returns the entries that are an obstacle, and whether each holds the key. Otherwise the key is reserved for the
  /// entry, or the entry precedes others in the wait queue.
  func users(of obstacle: Obstacle) -> [(ticket: Ticket, isHolder: Bool)] {
    guard let queue = queueIndices[obstacle.queue].map({ queues[$0] }) else { return [] }
    if obstacle.isFull { return queue.holders.map { ($0, entries[$0]?.state == .holding) } }
    let first =
      queue.preferred.all.first { isWaiting($0, preferred: true) }
      ?? queue.waiting.all.first { isWaiting($0, preferred: false) }
    return first.map { [($0, false)] } ?? []
  }

  /// Whether the table is empty and has no spare capacity.
  var isEmpty: Bool { entries.isEmpty && queueIndices.isEmpty && !entries.hasMuchRoom && !queueIndices.hasMuchRoom }
}
