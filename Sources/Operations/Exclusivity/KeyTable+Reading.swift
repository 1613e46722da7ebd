/// Reading the table, for policies, reports and debugging.
extension KeyTable {
  /// Returns the entries of a key, in the order of arrival.
  func tickets(of key: ExclusivityKey, in domain: ExclusivityDomain) -> [Ticket] {
    entries.filter { claims($1, key, in: domain) }.keys.sorted()
  }

  /// Returns the holders and waiters of these queues, in the order of arrival.
  func tickets(in ids: [QueueID]) -> [Ticket] {
    var result: Set<Ticket> = []
    for id in ids {
      guard let queue = queueIndices[id].map({ queues[$0] }) else { continue }
      result.formUnion(queue.holders)
      result.formUnion(queue.waiters.filter { entries[$0] != nil })
      for overdue in queue.overdue.values { result.formUnion(overdue) }
      for deferred in queue.deferred.values { result.formUnion(deferred.filter { entries[$0] != nil }) }
    }
    return result.sorted()
  }

  /// Returns the first holder of a queue, or its first waiter if it has no holder.
  func first(in id: QueueID) -> Ticket? { holders(in: id).first ?? tickets(in: [id]).first }

  func holders(in id: QueueID) -> [Ticket] { queueIndices[id].map { queues[$0].holders } ?? [] }

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
