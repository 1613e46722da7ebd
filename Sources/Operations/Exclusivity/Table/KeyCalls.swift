/// How claimants are called: the operations of Foundation's queues, and the members of groups, which answer at once.
extension KeyTable {
  /// The turn of a claimant has come, which has no position.
  mutating func grant(_ ticket: Ticket, _ effects: inout [Effect]) {
    // started   ──► holds its keys
    // group     ──► makes this change, and has a spare slot        ──► holds its keys, and the slot
    //           ──► has no slot                                    ──► yields, until it has one
    //           ──► is called ──► the group has a slot for it      ──► holds its keys, and the slot
    //                         └─► it has none                      ──► yields, until it has one
    // queue     ──► is called ──► Foundation starts it             ──► holds its keys
    //                         └─► it has not after 20 milliseconds ──► yields, and holds free keys when it is started
    let shares = entries[ticket.place].shares
    var until = Int.max
    let place = entries[ticket.place].place
    switch place {
    case .started: return hold(ticket, &effects)
    case .group:
      let slotsLeft = reserveSlot(for: ticket)
      if slotsLeft >= 0, slots.place == place { return holdWithSlot(ticket, &effects) }
      // Its group answers later, and another group could hand out a later member meanwhile. A group that makes this change
      // may have a slot for the member before those that are ready.
      if slotsLeft < 0, slots.place != place || slots.free <= 0 { return yield(ticket) }
    case .queue:
      for share in shares {
        until = min(until, uses[share.use].patienceEnd ?? now + uses[share.use].id.domain.patience)
      }
      // One time for all keys, so that the suspended queues of a chain of keys do not delay others one after another.
      for share in shares { uses[share.use].patienceEnd = uses[share.use].patienceEnd ?? until }
      if until <= now { return yield(ticket) }
      calls.insert(Call(until: until, ticket: ticket))
    }
    entries[ticket.place].state = .called(until: until)
    for share in shares { uses[share.use].called.add(ticket, share) }
  }

  /// Takes a spare slot of its group for a member. Returns how many are left, or a negative number if there was none.
  private mutating func reserveSlot(for ticket: Ticket) -> Int {
    let slotsLeft = claimants[ticket.place]?.room?.reserveSlot() ?? 0
    if slotsLeft == 0 { close(entries[ticket.place].place) }
    return slotsLeft
  }

  /// Lets others pass a claimant that is called, because its queue or group is full or suspended.
  mutating func yield(_ ticket: Ticket) {
    let place = entries[ticket.place].place
    let rank = entries[ticket.place].rank
    entries[ticket.place].state = .called(until: nil)
    for share in entries[ticket.place].shares {
      uses[share.use].yielding[place, default: [:]][rank.priority, default: KeyUse.Yielding(last: rank)].add(
        share,
        rank
      )
    }
    yielding[place, default: ArrayDeque()].insert(rank)
    close(place)
  }

  mutating func endCall(_ ticket: Ticket) {
    let shares = entries[ticket.place].shares
    usesToServe += shares.map(\.use)
    if case .called(let until?) = entries[ticket.place].state {
      calls.remove(Call(until: until, ticket: ticket))
      for share in shares { uses[share.use].called.remove(ticket, share) }
      return
    }
    let place = entries[ticket.place].place
    let rank = entries[ticket.place].rank
    for share in shares {
      uses[share.use].yielding[place]?[rank.priority]?.load.remove(ticket, share)
      if uses[share.use].yielding[place]?[rank.priority]?.load.count == 0 {
        uses[share.use].yielding[place]?[rank.priority] = nil
      }
      if uses[share.use].yielding[place]?.isEmpty == true { uses[share.use].yielding[place] = nil }
    }
    yielding[place]?.remove(rank)
    if yielding[place]?.isEmpty == true { yielding[place] = nil }
  }

  /// Lets others pass the waiting claimants of a queue or group that is full or suspended, when the caller serves them.
  mutating func close(_ place: KeyPlace) { usesToServe += blocked.removeValue(forKey: place) ?? [] }

  /// Lets a called claimant that has been started take its keys, if they are free.
  mutating func takeIfCalled(_ ticket: Ticket, _ effects: inout [Effect]) -> Bool {
    guard let entry = self[ticket], entry.state.isCalled, admits(entry) else { return false }
    leavePosition(ticket)
    entries[ticket.place].place = .started
    hold(ticket, &effects)
    serve(&effects)
    return true
  }

  func admits(_ entry: Entry) -> Bool { entry.shares.allSatisfy { uses[$0.use].holders.admits($0) } }

  /// Lets the next claimants pass those that have not been started in time.
  mutating func timeDidPass(_ effects: inout [Effect]) {
    while let call = calls.first, call.until <= now {
      endCall(call.ticket)
      yield(call.ticket)
    }
    serve(&effects)
  }

  // MARK: Members

  /// The group of a called member has a slot for it, with which it takes its keys, or waits for them again. Or the group
  /// has none, so that others pass it when the caller serves them.
  mutating func answer(_ claimant: KeyClaimant, hasSlot: Bool, _ effects: inout [Effect]) {
    guard let ticket = claimant.ticket, let entry = self[ticket], entry.state.isCalled else { return }
    if hasSlot {
      leavePosition(ticket)
      guard hasTurn(ticket) else { return wait(ticket, &effects) }
      _ = reserveSlot(for: ticket)
      holdWithSlot(ticket, &effects)
    } else if entry.state != .called(until: nil) {
      endCall(ticket)
      yield(ticket)
    }
  }

  /// A called member waits again, because keys are about to be free for its group. Returns whether it has its turn.
  mutating func recall(_ claimant: KeyClaimant) -> Bool {
    guard let ticket = claimant.ticket, state(of: ticket)?.isCalled == true else { return false }
    endCall(ticket)
    beginWait(ticket)
    return hasTurn(ticket)
  }
}
