import Foundation

extension KeyTable {
  mutating func holdWithSlot(_ ticket: Ticket, _ effects: inout [Effect]) {
    slots.free -= 1
    if let claimant = claimants[ticket.place] { slots.takers.append(claimant) }
    hold(ticket, &effects)
  }

  mutating func hold(_ ticket: Ticket, _ effects: inout [Effect]) {
    entries[ticket.place].state = .holding
    guard let claimant = claimants[ticket.place] else { return }
    claimant.didTakeKeys()
    for share in entries[ticket.place].shares {
      uses[share.use].patienceEnd = nil
      // The priorities that were lent to claimants that wait reach the next holder.
      let priority = uses[share.use].lentToWaiting.last ?? 0
      if priority > 0 { effects.append(.lend(priority, claimant)) }
      let isOnly = uses[share.use].holders.count == 0
      uses[share.use].lent = isOnly ? priority : min(priority, uses[share.use].lent)
      if share.interval == nil {
        uses[share.use].holders.add(ticket, share)
      } else {
        uses[share.use].claimCount += 1
        effects.append(.count(begin(share), claimant))
      }
    }
  }

  mutating func begin(_ share: Entry.Share) -> Start {
    let start: Start = (Ticket(number: nextNumber, place: -1), share)
    nextNumber += 1
    uses[share.use].holders.add(start.ticket, share)
    return start
  }

  /// Admits no claimant to a use until the caller ends the returned start.
  mutating func pause(_ id: KeyUse.ID, for interval: Duration, rest: @escaping @Sendable () -> Duration) -> Start {
    let use = join(id)
    let start = begin(Entry.Share(use: use, limit: 0, weight: 0, interval: interval))
    uses[use].pauses[start.ticket] = rest
    return start
  }

  mutating func end(_ start: Start, _ effects: inout [Effect]) {
    uses[start.share.use].holders.remove(start.ticket, start.share)
    uses[start.share.use].pauses[start.ticket] = nil
    usesToServe.append(start.share.use)
    serve(&effects)
    release(start.share.use, &effects)
  }

  mutating func limitDidChange(for key: ExclusivityKey, in domain: ExclusivityDomain, _ effects: inout [Effect]) {
    let id = KeyUse.ID(domain: domain, key: key)
    guard let use = useIndices[id] else { return }
    uses[use].holders.limit = id.limit
    usesToServe.append(use)
    serve(&effects)
  }

  // MARK: Leaving

  /// Gives back the keys, or leaves the wait queues. The claimant keeps its number.
  mutating func stepAside(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard entries.contains(ticket) else { return }
    leavePosition(ticket)
    entries[ticket.place].state = .away
    for share in entries[ticket.place].shares { uses[share.use].away.insert(ticket) }
    serve(&effects)
  }

  /// Removes a claimant. If it lends its keys, they are held until those that use them have left.
  mutating func leave(_ ticket: Ticket, lends: Bool = false, _ effects: inout [Effect]) {
    guard let state = state(of: ticket) else { return }
    if lends, state.isHolding, entries[ticket.place].loans > 0 {
      if state == .replaced { forgetReplacement(of: ticket) }
      entries[ticket.place].state = .lending
      return serve(&effects)
    }
    remove([ticket], &effects)
  }

  mutating func remove(_ tickets: [Ticket], _ effects: inout [Effect]) {
    var ended: [Entry.Share] = []
    var rest = tickets
    while let ticket = rest.popLast() {
      leavePosition(ticket)
      let shares = entries[ticket.place].shares
      // The table may hold the last reference to a task that has ended.
      if entries[ticket.place].state == .lending, let claimant = claimants[ticket.place] {
        effects.append(.release(claimant))
      }
      claimants[ticket.place]?.end()
      claimants[ticket.place] = nil
      entries.remove(ticket.place)
      ended += shares
      for share in shares {
        guard let lender = uses[share.use].id.holder, entries.contains(lender) else { continue }
        entries[lender.place].loans -= 1
        if entries[lender.place].loans == 0, entries[lender.place].state == .lending { rest.append(lender) }
      }
    }
    serve(&effects)
    for share in ended { release(share.use, &effects) }
    if !entries.isEmpty { return }
    claimants = []
    blocked = [:]
  }

  mutating func leavePosition(_ ticket: Ticket) {
    let shares = entries[ticket.place].shares
    let state = entries[ticket.place].state
    switch state {
    case .away: for share in shares { uses[share.use].away.remove(ticket) }
    case .waiting: endWait(ticket)
    case .called:
      endCall(ticket)
      for share in shares where uses[share.use].called.count == 0 && uses[share.use].yielding.isEmpty {
        uses[share.use].patienceEnd = nil
      }
    case .holding, .replaced, .lending:
      if state == .replaced { forgetReplacement(of: ticket) }
      for share in shares where share.interval == nil {
        uses[share.use].holders.remove(ticket, share)
        usesToServe.append(share.use)
      }
    }
  }

  private mutating func forgetReplacement(of ticket: Ticket) {
    for share in entries[ticket.place].shares where share.interval == nil { uses[share.use].replacedCount -= 1 }
  }

  mutating func release(_ use: Int, _ effects: inout [Effect]) {
    uses[use].claimCount -= 1
    if uses[use].claimCount > 0 { return }
    let id = uses[use].id
    if let position = useIndices.index(forKey: id) {
      let equal = useIndices.remove(at: position).key
      if id.key.hasValue { effects.append(.release((id, equal))) }
    }
    uses.remove(use)
    useIndices.giveBackRoom()
  }
}
