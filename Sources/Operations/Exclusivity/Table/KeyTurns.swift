import Foundation

extension KeyTable {
  // MARK: Waiting

  /// Waits, unless it is the claimant's turn. It has no position. The caller reads its state.
  mutating func wait(_ ticket: Ticket, _ effects: inout [Effect]) {
    if hasTurn(ticket) { return grant(ticket, &effects) }
    beginWait(ticket)
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

  mutating func beginWait(_ ticket: Ticket) {
    entries[ticket.place].state = .waiting
    let entry = entries[ticket.place]
    for share in entry.shares { uses[share.use].beginWait(of: entry, for: share) }
  }

  mutating func endWait(_ ticket: Ticket) {
    let entry = entries[ticket.place]
    for share in entry.shares {
      uses[share.use].endWait(of: entry, for: share)
      usesToServe.append(share.use)
    }
  }

  /// Moves a claimant in the wait queues, unless it passes all others.
  mutating func setPriority(_ priority: Int, lent: UInt8, of ticket: Ticket, _ effects: inout [Effect]) {
    guard let entry = self[ticket] else { return }
    let priority = entry.rank.priority == .max ? .max : priority
    let lent = max(lent, entry.lent)
    if priority == entry.rank.priority, lent == entry.lent { return }
    let isYielding = entry.state == .called(until: nil)
    if entry.state == .waiting { endWait(ticket) } else if isYielding { endCall(ticket) }
    entries[ticket.place].rank.priority = priority
    entries[ticket.place].lent = lent
    if isYielding { yield(ticket) }
    if entry.state == .waiting {
      wait(ticket, &effects)
      report(ticket, &effects)
    }
    serve(&effects)
  }

  /// Lets a claimant pass all that wait before it.
  mutating func prefer(_ ticket: Ticket, _ effects: inout [Effect]) {
    setPriority(.max, lent: 0, of: ticket, &effects)
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

  // MARK: Turns

  /// Grants the turns that come because of a change of ``usesToServe``, in the order of the claimants' ranks.
  mutating func serve(_ effects: inout [Effect]) {
    var turns = ArrayDeque<Entry.Rank>()
    repeat {
      while let use = usesToServe.popLast() {
        guard uses.indices.contains(use) else { continue }
        if let rank = next(in: use, after: turns) { turns.insert(rank) }
      }
      guard let ticket = turns.popFirst()?.ticket else { return }
      guard state(of: ticket) == .waiting else { continue }
      // The grant of another turn may have prevented this one. Then those behind it in its other uses may pass.
      endWait(ticket)
      wait(ticket, &effects)
      report(ticket, &effects)
    } while true
  }

  /// Tells a claimant that its turn has come, unless it still waits. The group of a member that holds its keys knows it.
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

  /// Whether each key of a claimant has room for it, and no claimant before it blocks it.
  mutating func hasTurn(_ ticket: Ticket) -> Bool {
    // Claimants arrive from left to right, with exclusive keys. The first of each line holds its key, or yields.
    //
    //     running(a)    first(a, b)   second(b)   “second” waits, although b is free: “first” blocks it, unless the queue
    //                                             or group of “first” is full or suspended.
    //     group(a)      other(a, b)   member(b)   “member” runs inside “group”, for which “other” waits. It has its turn,
    //                                             because the group could never end otherwise.
    //     yielding(a)   next(a)       other(a)    “yielding” and “next” are in one queue, which starts “yielding” first. So
    //                                             “next” waits, and “other” of another queue does not.
    for share in entries[ticket.place].shares {
      let yielding = yielding(before: ticket, in: share.use)
      if !uses[share.use].admits(share, beside: yielding) || blocker(of: ticket, in: share.use) != nil { return false }
    }
    return true
  }

  /// The claimants before this one that yield to those of other places.
  func yielding(before ticket: Ticket, in use: Int) -> [KeyUse.Load] {
    let rank = entries[ticket.place].rank
    let place = entries[ticket.place].place
    guard let first = yielding[place]?.first, first < rank, let levels = uses[use].yielding[place] else { return [] }
    return levels.filter { $0.key >= rank.priority }.map { priority, yielding in
      // A claimant nearly always comes after all of its priority. Otherwise, each of them is compared.
      if priority > rank.priority || yielding.last < rank { return yielding.load }
      var load = KeyUse.Load()
      for other in yielding.load.tickets where entries[other.place].rank < rank {
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
    case .started: return true
    case .queue: if yielding[place] != nil { return false }
    case .group: if claimants[ticket.place]?.room?.blocksOthers() != true { return false }
    }
    blocked[place, default: []].insert(use)
    return true
  }

  func waits(_ ticket: Ticket, forHolderAround member: Ticket) -> Bool {
    if entries[member.place].holder == nil { return false }
    let refusing = entries[ticket.place].shares.filter { !uses[$0.use].holders.admits($0) }.map(\.use)
    return entries[member.place].enclosing.contains { outer in
      guard state(of: outer)?.isHolding == true, !entries[ticket.place].enclosing.contains(outer) else { return false }
      return entries[outer.place].shares.contains { refusing.contains($0.use) }
    }
  }

  /// Those behind which a claimant waits, if it waits for nothing but its turn, and whether it is inside a holder.
  mutating func claimants(before ticket: Ticket) -> (claimants: [KeyClaimant], isInHolder: Bool) {
    guard let entry = self[ticket], entry.rank.priority < .max else { return ([], false) }
    let obstacles = obstacles(of: ticket).map(\.obstacle)
    let earlier = obstacles.compactMap { if case .earlier(_, let other) = $0 { claimant(other) } else { nil } }
    return (earlier.count == obstacles.count ? earlier : [], entry.holder != nil)
  }
}
