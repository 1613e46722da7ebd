import Foundation

extension KeyTable {
  // MARK: Waiting

  /// Waits, unless it is the claimant's turn. It has no position. The caller reads its state.
  mutating func wait(_ ticket: Ticket, _ effects: inout [Effect]) {
    if hasTurn(ticket) { return call(ticket, &effects) }
    enterLines(ticket)
    lend(from: ticket, &effects)
    if entries[ticket.place].holder != nil, let claimant = claimant(ticket) { effects.append(.watch(claimant)) }
  }

  /// Waits at its place in the wait queues, unless it is the claimant's turn.
  mutating func waitAgain(_ ticket: Ticket, at place: KeyPlace, _ effects: inout [Effect]) {
    leavePosition(ticket)
    entries[ticket.place].place = place
    wait(ticket, &effects)
    serve(&effects)
  }

  mutating func enterLines(_ ticket: Ticket) {
    entries[ticket.place].state = .waiting
    let (rank, line, lent) = (entries[ticket.place].rank, entries[ticket.place].line, entries[ticket.place].lent)
    for share in entries[ticket.place].shares { uses[share.use].wait(rank, in: line, for: share, lending: lent) }
  }

  mutating func endWait(_ ticket: Ticket) {
    let (rank, line, lent) = (entries[ticket.place].rank, entries[ticket.place].line, entries[ticket.place].lent)
    for share in entries[ticket.place].shares {
      uses[share.use].endWait(rank, in: line, for: share, lending: lent)
      usesToServe.append(share.use)
    }
  }

  mutating func setPriority(_ priority: Int, lent: UInt8, of ticket: Ticket, _ effects: inout [Effect]) {
    guard let entry = self[ticket] else { return }
    // One that passes others goes on to.
    let (priority, lent) = (entry.rank.priority == .max ? .max : priority, max(lent, entry.lent))
    if priority == entry.rank.priority, lent == entry.lent { return }
    if entry.state == .waiting { endWait(ticket) } else if entry.state == .called(until: nil) { endCall(ticket) }
    (entries[ticket.place].rank.priority, entries[ticket.place].lent) = (priority, lent)
    if entry.state == .called(until: nil) { pass(ticket) }
    if entry.state == .waiting {
      wait(ticket, &effects)
      report(ticket, &effects)
    }
    serve(&effects)
  }

  /// Lends the priority of a claimant that waits to the holders of its keys, unless they have received it before.
  mutating func lend(from ticket: Ticket, _ effects: inout [Effect]) {
    let priority = entries[ticket.place].lent
    for share in entries[ticket.place].shares where share.interval == nil && uses[share.use].lent < priority {
      if uses[share.use].holders.admits(share) { continue }
      uses[share.use].lent = priority
      effects += uses[share.use].holders.tickets.compactMap { claimant($0) }.map { .lend(priority, $0) }
    }
  }

  /// Serves the claimants whose turn it is because of a change of ``usesToServe``, in the order of their ranks.
  mutating func serve(_ effects: inout [Effect]) {
    var turns = ArrayDeque<Entry.Rank>()
    repeat {
      while let use = usesToServe.popLast() {
        guard uses.indices.contains(use) else { continue }
        if let rank = next(in: use, after: turns) { turns.insert(rank) }
      }
      guard let ticket = turns.popFirst()?.ticket else { return }
      if state(of: ticket) == .waiting, hasTurn(ticket) { serve(ticket, &effects) }
    } while true
  }

  mutating func serve(_ ticket: Ticket, _ effects: inout [Effect]) {
    endWait(ticket)
    call(ticket, &effects)
    report(ticket, &effects)
  }

  /// Tells a claimant that it has been called, unless it still waits. The group of a member that holds its keys knows it.
  mutating func report(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard let state = state(of: ticket), state != .waiting, let claimant = claimant(ticket) else { return }
    if state.isHolding, claimant.room != nil { return }
    effects.append(.call(claimant, isAnswered: state.isHolding))
  }

  /// Returns the first claimant of a use whose turn it is, unless it has been found before.
  mutating func next(in use: Int, after found: ArrayDeque<Entry.Rank>) -> Entry.Rank? {
    if uses[use].isFull { return nil }
    let heads = uses[use].heads
    for case let head? in heads.all {
      if found.contains(head) { return nil }
      if hasTurn(head.ticket) { return head }
      // Only a member of a holder may pass a claimant that waits.
      if uses[use].innerLineCount == 0, blocks(head.ticket, use) { return nil }
    }
    return nil
  }

  mutating func hasTurn(_ ticket: Ticket) -> Bool {
    for share in entries[ticket.place].shares {
      let passed = passed(before: ticket, in: share.use)
      if !uses[share.use].admits(share, beside: passed) || blocker(of: ticket, in: share.use) != nil { return false }
    }
    return true
  }

  /// The claimants of the same place that have been called before this one, and that others pass.
  func passed(before ticket: Ticket, in use: Int) -> [KeyUse.Load] {
    let rank = entries[ticket.place].rank
    let place = entries[ticket.place].place
    guard let first = passed[place]?.first, first < rank, let levels = uses[use].passed[place] else { return [] }
    return levels.filter { $0.key >= rank.priority }.map { priority, passed in
      // A claimant nearly always comes after all of its priority. Otherwise, each of them is compared.
      if priority > rank.priority || passed.last < rank { return passed.load }
      var load = KeyUse.Load()
      for other in passed.load.tickets where entries[other.place].rank < rank {
        for share in entries[other.place].shares where share.use == use { load.add(other, share) }
      }
      return load
    }
  }

  /// The claimant before this one that does not let it pass, if there is one.
  mutating func blocker(of ticket: Ticket, in use: Int) -> Ticket? {
    if uses[use].first == nil { return nil }
    let heads = uses[use].heads
    for case let head? in heads.all {
      if head >= entries[ticket.place].rank { return nil }
      if entries[head.ticket.place].line == entries[ticket.place].line { return head.ticket }
      if !waits(head.ticket, forHolderAround: ticket), blocks(head.ticket, use) { return head.ticket }
    }
    return nil
  }

  /// Whether others must not pass a claimant that waits. Its queue or group is not full or suspended, as far as it is known.
  mutating func blocks(_ ticket: Ticket, _ use: Int) -> Bool {
    let place = entries[ticket.place].place
    switch place {
    case .none: return true
    case .queue: if passed[place] != nil { return false }
    case .group: if claimants[ticket.place]?.room?.isLeft != true { return false }
    }
    blocked[place, default: []].insert(use)
    return true
  }

  /// Lets others pass the waiting claimants of a queue or group that is full or suspended.
  mutating func close(_ place: KeyPlace, _ effects: inout [Effect]) {
    close(place)
    serve(&effects)
  }

  mutating func close(_ place: KeyPlace) { usesToServe += blocked.removeValue(forKey: place) ?? [] }

  func waits(_ ticket: Ticket, forHolderAround member: Ticket) -> Bool {
    if entries[member.place].holder == nil { return false }
    let refusing = entries[ticket.place].shares.filter { !uses[$0.use].holders.admits($0) }.map(\.use)
    return entries[member.place].enclosing.contains { outer in
      guard state(of: outer)?.isHolding == true, !entries[ticket.place].enclosing.contains(outer) else { return false }
      return entries[outer.place].shares.contains { refusing.contains($0.use) }
    }
  }

  // MARK: Calling

  mutating func call(_ ticket: Ticket, _ effects: inout [Effect]) {
    let place = entries[ticket.place].place
    switch place {
    case .none: hold(ticket, &effects)
    case .group where slots.free > 0 && slots.place == place:
      holdWithSlot(ticket, &effects)
    case .group:
      entries[ticket.place].state = .called(until: .max)
      for share in entries[ticket.place].shares { uses[share.use].called.add(ticket, share) }
    case .queue:
      var until = Int.max
      for share in entries[ticket.place].shares {
        until = min(until, uses[share.use].patienceEnd ?? now + uses[share.use].id.domain.patience)
      }
      // One time for all keys, so that the suspended queues of a chain of keys do not delay others one after another.
      for share in entries[ticket.place].shares { uses[share.use].patienceEnd = uses[share.use].patienceEnd ?? until }
      if until <= now { return pass(ticket) }
      entries[ticket.place].state = .called(until: until)
      calls.insert(Call(until: until, ticket: ticket))
      for share in entries[ticket.place].shares { uses[share.use].called.add(ticket, share) }
    }
  }

  /// Lets others pass a claimant that is called, because its queue or group is full or suspended.
  mutating func pass(_ ticket: Ticket) {
    let (place, rank) = (entries[ticket.place].place, entries[ticket.place].rank)
    entries[ticket.place].state = .called(until: nil)
    for share in entries[ticket.place].shares {
      uses[share.use].passed[place, default: [:]][rank.priority, default: KeyUse.Passed(last: rank)].add(share, rank)
    }
    passed[place, default: ArrayDeque()].insert(rank)
    close(place)
  }

  mutating func endCall(_ ticket: Ticket) {
    let (shares, place) = (entries[ticket.place].shares, entries[ticket.place].place)
    let priority = entries[ticket.place].rank.priority
    usesToServe += shares.map(\.use)
    if case .called(let until?) = entries[ticket.place].state {
      calls.remove(Call(until: until, ticket: ticket))
      for share in shares { uses[share.use].called.remove(ticket, share) }
    } else {
      for share in shares {
        uses[share.use].passed[place]?[priority]?.load.remove(ticket, share)
        if uses[share.use].passed[place]?[priority]?.load.count == 0 { uses[share.use].passed[place]?[priority] = nil }
        if uses[share.use].passed[place]?.isEmpty == true { uses[share.use].passed[place] = nil }
      }
      passed[place]?.remove(entries[ticket.place].rank)
      if passed[place]?.isEmpty == true { passed[place] = nil }
    }
  }

  /// A called member waits again, because its group has a slot, and keys are about to be free. Returns whether it is its
  /// turn already.
  mutating func recall(_ claimant: KeyClaimant) -> Bool {
    guard let ticket = claimant.ticket, state(of: ticket)?.isCalled == true else { return false }
    endCall(ticket)
    enterLines(ticket)
    return hasTurn(ticket)
  }

  // MARK: Starting

  /// The group of a called member has a slot for it, with which it takes its keys, or waits for them again. Or the group
  /// has none, so that others pass it.
  mutating func answer(_ claimant: KeyClaimant, hasSlot: Bool, _ effects: inout [Effect]) {
    guard let ticket = claimant.ticket, let state = state(of: ticket), state.isCalled else { return }
    let shares = entries[ticket.place].shares
    if hasSlot, state != .called(until: nil), shares.allSatisfy({ uses[$0.use].holders.admits($0) }) {
      // None of those behind it has been called instead.
      for share in shares { uses[share.use].called.remove(ticket, share) }
      holdWithSlot(ticket, &effects)
    } else if hasSlot {
      leavePosition(ticket)
      if hasTurn(ticket) { holdWithSlot(ticket, &effects) } else { wait(ticket, &effects) }
      serve(&effects)
    } else if state != .called(until: nil) {
      endCall(ticket)
      pass(ticket)
      serve(&effects)
    }
  }

  private mutating func holdWithSlot(_ ticket: Ticket, _ effects: inout [Effect]) {
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

  mutating func limitDidChange(for key: ExclusivityKey, in domain: ExclusivityDomain, _ effects: inout [Effect]) {
    let id = KeyUse.ID(domain: domain, key: key)
    guard let use = useIndices[id] else { return }
    uses[use].holders.limit = id.limit
    usesToServe.append(use)
    serve(&effects)
  }

  mutating func end(_ start: Start, _ effects: inout [Effect]) {
    uses[start.share.use].holders.remove(start.ticket, start.share)
    uses[start.share.use].pauses[start.ticket] = nil
    usesToServe.append(start.share.use)
    serve(&effects)
    release(start.share.use, &effects)
  }

  // MARK: Time

  /// When to call ``timeDidPass(_:)``.
  var deadline: Int? { calls.first?.until }

  /// Lets the next claimants pass those that have not been started in time.
  mutating func timeDidPass(_ effects: inout [Effect]) {
    while let call = calls.first, call.until <= now {
      endCall(call.ticket)
      pass(call.ticket)
    }
    serve(&effects)
  }

  /// Those behind which a claimant waits, if it waits for nothing but its turn, and whether it is inside a holder.
  mutating func claimants(before ticket: Ticket) -> (claimants: [KeyClaimant], isInHolder: Bool) {
    guard let entry = self[ticket], entry.rank.priority < .max else { return ([], false) }
    let obstacles = obstacles(of: ticket).map(\.obstacle)
    let earlier = obstacles.compactMap { if case .earlier(_, let other) = $0 { claimant(other) } else { nil } }
    return (earlier.count == obstacles.count ? earlier : [], entry.holder != nil)
  }

  /// Lets a claimant pass all that wait before it.
  mutating func prefer(_ ticket: Ticket, _ effects: inout [Effect]) {
    setPriority(.max, lent: 0, of: ticket, &effects)
  }
}
