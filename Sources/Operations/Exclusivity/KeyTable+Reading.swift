/// Reading the table, for policies, reports and debugging.
extension KeyTable {
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

  /// An operation that keeps another operation from its key.
  struct Obstacle {
    let key: ExclusivityKey
    let limit: Int
    let ticket: Ticket
    /// Whether the operation holds the key. Otherwise it precedes the other operation in the wait queue, or the key is
    /// reserved for it.
    let isHolder: Bool
  }

  /// Returns the obstacles of a waiting entry. For each key these are the holders or, if the key admits another holder,
  /// the first waiter before the entry.
  func obstacles(of ticket: Ticket) -> [Obstacle] {
    guard let entry = entries[ticket], entry.state == .waiting else { return [] }
    return entry.claims.flatMap { claim -> [Obstacle] in
      let queue = queues[claim.queue]
      let key = queue.id.key
      if !queue.admits(claim.limit) {
        let limit = min(claim.limit, queue.smallestLimit)
        return queue.holders.map {
          Obstacle(key: key, limit: limit, ticket: $0, isHolder: entries[$0]?.state == .holding)
        }
      }
      let first = queue.waiters.first {
        isWaiting($0, preferred: true) || isWaiting($0, preferred: false)
      }
      guard let first, first != ticket else { return [] }
      return [Obstacle(key: key, limit: claim.limit, ticket: first, isHolder: false)]
    }
  }

  /// Whether the table is empty and has no spare capacity.
  var isEmpty: Bool { entries.isEmpty && queueIndices.isEmpty && !entries.hasMuchRoom && !queueIndices.hasMuchRoom }
}
