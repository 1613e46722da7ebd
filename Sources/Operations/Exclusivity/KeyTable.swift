import Foundation

/// The slots of the group of a claimant. Called under the lock of the table.
protocol SlotUser {
  /// Takes a slot, unless there is none, or a member without keys comes first.
  func takeSlot(_ rank: KeyEntry.Rank) -> Bool
  func returnSlot()
  /// The claimant has been called, and waits again, so that others of its group need not wait for it.
  func callWasWithdrawn()
  /// Whether the group has a slot. If so, the caller is notified when it has none any more.
  var hasRoom: Bool { get }
}

/// The claimants that hold keys, and the claimants that wait for keys.
///
/// The first claimant that fits is next: its keys admit it, it comes first in the wait queues of all of them, and its group
/// has a slot. Claimants whose queue or group is full or suspended are passed, and keep their places. A member of a holder
/// passes those that wait for this holder, so that the order of waiting never causes a deadlock.
///
/// A member of a group takes a slot and its keys in one step. Foundation decides when an operation of a queue starts, so
/// it is *called*, and takes its keys when it is started.
struct KeyTable<Claimant: SlotUser> {
  typealias Ticket = KeyTicket
  typealias Entry = KeyEntry

  /// What the caller must do after releasing the lock, in the order of the effects.
  enum Effect {
    /// It is the claimant's turn. It holds its keys, and a slot if it is a member, or may be started.
    case call(Claimant, holdsKeys: Bool, request: Int)
    /// A throttled claimant starts. The caller ends this start after an interval on the claimant's clock.
    case count(Start, Claimant)
    case lend(TaskPriority, Claimant)
    case cancel(Claimant, Refusal?)
    /// Keys that are no longer in use. They may hold the last references to objects of the program.
    case release(Any)
  }

  /// The reason why a claimant is cancelled.
  enum Refusal {
    case excluded(from: ExclusivityKey, by: Claimant)
    case replaced(by: Claimant)
    /// The claimant would wait forever.
    case deadlock(ExclusivityKey, holder: Claimant?)
  }

  /// A start under a throttled key, which counts as a holder until it leaves the window.
  struct Start {
    fileprivate let ticket: Ticket
    fileprivate let share: Entry.Share
    let interval: Duration
  }

  /// A call that has not been answered. Until this time, no claimant behind the called one is called.
  private struct Call: Comparable {
    let until: Int
    let ticket: Ticket

    static func < (left: Self, right: Self) -> Bool { (left.until, left.ticket) < (right.until, right.ticket) }
  }

  /// The time in milliseconds, which the caller sets before each change.
  var now = 0
  var entries = SlotList(vacant: KeyEntry.vacant)
  private var claimants: [Claimant?] = []
  var uses = SlotList(vacant: KeyUse.vacant)
  private(set) var useIndices: [KeyUse.ID: Int] = [:]
  /// When to search for a deadlock, if one may have closed since the last search.
  private var searchTime: Int?
  private var nextNumber = 0
  private var calls = ArrayDeque<Call>()
  /// The called claimants that others pass, by place.
  private var passed: [KeyPlace: ArrayDeque<Entry.Rank>] = [:]
  /// The uses in which others wait behind a member of a group that has a slot, by group.
  private var blocked: [KeyPlace: Set<Int>] = [:]
  /// The uses in which it may be the turn of another claimant.
  private var usesToServe: [Int] = []

  subscript(ticket: Ticket) -> Entry? { entries.contains(ticket) ? entries[ticket.place] : nil }

  func state(of ticket: Ticket) -> KeyState? { entries.contains(ticket) ? entries[ticket.place].state : nil }

  func claimant(_ ticket: Ticket) -> Claimant? { entries.contains(ticket) ? claimants[ticket.place] : nil }

  // MARK: Entering

  /// Adds a claimant, which arrives at the wait queues of its keys. Returns nil if a policy drops it.
  mutating func enter(
    _ claimant: Claimant,
    _ claims: [KeyClaim],
    inside enclosing: [Ticket] = [],
    at place: KeyPlace = .none,
    priority: Int = 0,
    lent: TaskPriority? = nil,
    request: Int = 0,
    _ effects: inout [Effect]
  ) -> Ticket? {
    if claims.contains(where: { $0.policy != .wait }), !applyPolicies(of: claimant, claims, inside: enclosing, &effects) {
      return nil
    }
    let ticket = Ticket(number: nextNumber, place: entries.nextIndex)
    nextNumber += 1
    let holder = enclosing.first { state(of: $0)?.isHolding == true }?.number
    let rank = Entry.Rank(priority: priority, ticket: ticket)
    var entry = Entry(rank: rank, enclosing: enclosing, holder: holder, place: place, request: request, lent: lent)
    for claim in claims { addShares(of: claim, to: &entry) }
    if ticket.place == claimants.count { claimants.append(claimant) } else { claimants[ticket.place] = claimant }
    entries.insert(entry)
    wait(ticket, &effects)
    return ticket
  }

  /// The enclosing holders of a key, innermost first.
  private func lenders(of claim: KeyClaim, inside enclosing: [Ticket]) -> [Ticket] {
    enclosing.filter { state(of: $0)?.isHolding == true && has($0, claim.key, in: claim.domain) }
  }

  /// Returns the use of the key among the members of the innermost enclosing holder of the key, or else in the program.
  func useID(of claim: KeyClaim, inside enclosing: [Ticket]) -> KeyUse.ID {
    let lender = lenders(of: claim, inside: enclosing).first
    return KeyUse.ID(domain: claim.domain, key: claim.key, holder: lender?.number)
  }

  /// A claim uses the key of the enclosing holder. If it is stronger than that of the holder, it also takes what it needs
  /// in addition of the use to which the holder belongs.
  private mutating func addShares(of claim: KeyClaim, to entry: inout Entry) {
    var lenders = lenders(of: claim, inside: entry.enclosing)[...]
    var weight = claim.weight
    while true {
      let lender = lenders.popFirst()
      let id = KeyUse.ID(domain: claim.domain, key: claim.key, holder: lender?.number)
      entry.shares.append(Entry.Share(use: join(id), limit: claim.limit, weight: weight))
      guard let lender else { break }
      entries[lender.place].loans += 1
      let other = entries[lender.place].shares.first { uses[$0.use].id.key == claim.key && $0.interval == nil }
      guard let other, claim.limit < other.limit || claim.weight > other.weight else { break }
      weight = max(claim.weight - other.weight, 0)
    }
    for throttle in claim.throttles {
      let use = join(KeyUse.ID(domain: claim.domain, key: claim.key, interval: throttle.interval))
      entry.shares.append(Entry.Share(use: use, limit: throttle.count, weight: 1, interval: throttle.interval))
    }
  }

  private mutating func join(_ id: KeyUse.ID) -> Int {
    let next = uses.nextIndex
    // Inserts a new index, so that the key is hashed once.
    let index = { (index: inout Int) in index }(&useIndices[id, default: next])
    if index == next { uses.insert(KeyUse(id)) }
    uses[index].claimCount += 1
    return index
  }

  /// Returns to the wait queues, at the place of the claimant's arrival.
  mutating func comeBack(_ ticket: Ticket, at place: KeyPlace, request: Int = 0, _ effects: inout [Effect]) {
    guard let state = state(of: ticket) else { return }
    entries[ticket.place].request = max(request, entries[ticket.place].request)
    guard state == .away else { return }
    leavePosition(ticket)
    entries[ticket.place].place = place
    wait(ticket, &effects)
  }

  // MARK: Waiting

  /// Waits, unless it is the claimant's turn. It has no position. The caller reads its state.
  private mutating func wait(_ ticket: Ticket, _ effects: inout [Effect]) {
    if hasTurn(ticket) { return call(ticket, &effects) }
    enterLines(ticket)
    suspectDeadlock(of: ticket)
  }

  private mutating func enterLines(_ ticket: Ticket) {
    entries[ticket.place].state = .waiting
    for share in entries[ticket.place].shares { uses[share.use].wait(entries[ticket.place]) }
  }

  private mutating func endWait(_ ticket: Ticket) {
    for share in entries[ticket.place].shares {
      uses[share.use].endWait(entries[ticket.place])
      usesToServe.append(share.use)
    }
  }

  /// Changes the priority of a claimant, in any state.
  mutating func setPriority(_ priority: Int, lent: TaskPriority?, of ticket: Ticket, _ effects: inout [Effect]) {
    guard let entry = self[ticket] else { return }
    if let lent { entries[ticket.place].lent = max(lent, entry.lent ?? lent) }
    if priority == entry.rank.priority { return }
    switch entry.state {
    case .waiting:
      endWait(ticket)
      entries[ticket.place].rank.priority = priority
      wait(ticket, &effects)
      report(ticket, &effects)
    case .called(until: nil):
      endCall(ticket, until: nil)
      entries[ticket.place].rank.priority = priority
      pass(ticket)
    case .away, .called, .holding, .replaced, .lending: entries[ticket.place].rank.priority = priority
    }
    serve(&effects)
  }

  /// Serves the claimants whose turn it is because of a change of ``usesToServe``, in the order of their ranks.
  mutating func serve(_ effects: inout [Effect]) {
    var turns = ArrayDeque<Entry.Rank>()
    var found: Set<Ticket> = []
    repeat {
      while let use = usesToServe.popLast() {
        guard uses.indices.contains(use) else { continue }
        if let rank = next(in: use, except: found), found.insert(rank.ticket).inserted { turns.insert(rank) }
      }
      guard let ticket = turns.popFirst()?.ticket else { return }
      found.remove(ticket)
      if state(of: ticket) == .waiting, hasTurn(ticket) { serve(ticket, &effects) }
    } while true
  }

  private mutating func serve(_ ticket: Ticket, _ effects: inout [Effect]) {
    endWait(ticket)
    call(ticket, &effects)
    report(ticket, &effects)
  }

  /// Tells a claimant that it has been called, unless it still waits.
  private mutating func report(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard let state = state(of: ticket), state != .waiting, let claimant = claimant(ticket) else { return }
    effects.append(.call(claimant, holdsKeys: state.isHolding, request: entries[ticket.place].request))
  }

  /// Returns the first claimant of a use whose turn it is. It need not be checked again if it was found before.
  private mutating func next(in use: Int, except found: Set<Ticket>) -> Entry.Rank? {
    if uses[use].first == nil { return nil }
    let heads = uses[use].heads
    for head in heads.all {
      if found.contains(head.rank.ticket) || hasTurn(head.rank.ticket) { return head.rank }
      // Only a member of a holder may pass a claimant that waits.
      if uses[use].innerLineCount == 0, blocks(head.rank.ticket, use) { return nil }
    }
    return nil
  }

  private mutating func hasTurn(_ ticket: Ticket) -> Bool {
    for share in entries[ticket.place].shares {
      let isAdmitted = uses[share.use].admits(share, beside: passed(before: ticket, in: share.use))
      if !isAdmitted || !isNext(ticket, in: share.use) { return false }
    }
    return true
  }

  /// The claimants of the same place that have been called before this one, and that others pass.
  private func passed(before ticket: Ticket, in use: Int) -> KeyUse.Load? {
    if uses[use].passed.isEmpty { return nil }
    guard let passed = uses[use].passed[entries[ticket.place].place] else { return nil }
    if passed.last < entries[ticket.place].rank { return passed.load }
    var load = KeyUse.Load()
    for other in passed.load.tickets where entries[other.place].rank < entries[ticket.place].rank {
      for share in entries[other.place].shares where share.use == use { load.add(other, share) }
    }
    return load
  }

  /// Whether the claimants before this one let it pass.
  private mutating func isNext(_ ticket: Ticket, in use: Int) -> Bool {
    if uses[use].first == nil || entries[ticket.place].isPreferred { return true }
    let heads = uses[use].heads
    for head in heads.all {
      if head.rank >= entries[ticket.place].rank { return true }
      if head.line == entries[ticket.place].line { return false }
      if !waits(head.rank.ticket, forHolderAround: ticket), blocks(head.rank.ticket, use) { return false }
    }
    return true
  }

  /// Whether others must not pass a claimant that waits. Its queue or group is not full or suspended, as far as it is known.
  private mutating func blocks(_ ticket: Ticket, _ use: Int) -> Bool {
    let place = entries[ticket.place].place
    switch place {
    case .none: return true
    case .queue: return passed[place] == nil
    case .group:
      guard claimants[ticket.place]?.hasRoom == true else { return false }
      blocked[place, default: []].insert(use)
      return true
    }
  }

  /// Lets others pass the waiting members of a group that is full or suspended.
  mutating func close(_ place: KeyPlace, _ effects: inout [Effect]) {
    usesToServe += blocked.removeValue(forKey: place) ?? []
    serve(&effects)
  }

  private func waits(_ ticket: Ticket, forHolderAround member: Ticket) -> Bool {
    if entries[member.place].holder == nil { return false }
    let refusing = entries[ticket.place].shares.filter { !uses[$0.use].holders.admits($0) }.map(\.use)
    return entries[member.place].enclosing.contains { outer in
      guard state(of: outer)?.isHolding == true, !entries[ticket.place].enclosing.contains(outer) else { return false }
      return entries[outer.place].shares.contains { refusing.contains($0.use) }
    }
  }

  // MARK: Calling

  private mutating func call(_ ticket: Ticket, _ effects: inout [Effect]) {
    switch entries[ticket.place].place {
    case .none: hold(ticket, &effects)
    case .group:
      if claimants[ticket.place]?.takeSlot(entries[ticket.place].rank) == true {
        hold(ticket, &effects)
        let place = entries[ticket.place].place
        if blocked[place] != nil, claimants[ticket.place]?.hasRoom == false {
          usesToServe += blocked.removeValue(forKey: place) ?? []
        }
      } else {
        pass(ticket)
      }
    case .queue:
      var until = Int.max
      for share in entries[ticket.place].shares {
        let end = uses[share.use].patienceEnd ?? now + uses[share.use].id.domain.patience
        uses[share.use].patienceEnd = end
        until = min(until, end)
      }
      if until <= now { return pass(ticket) }
      entries[ticket.place].state = .called(until: until)
      calls.insert(Call(until: until, ticket: ticket))
      for share in entries[ticket.place].shares { uses[share.use].called.add(ticket, share) }
    }
  }

  /// Lets others pass a claimant that is called, because its queue or group is full or suspended.
  private mutating func pass(_ ticket: Ticket) {
    let place = entries[ticket.place].place
    entries[ticket.place].state = .called(until: nil)
    let rank = entries[ticket.place].rank
    for share in entries[ticket.place].shares {
      uses[share.use].passed[place, default: KeyUse.Passed(last: rank)].add(share, rank)
    }
    passed[place, default: ArrayDeque()].insert(rank)
  }

  private mutating func endCall(_ ticket: Ticket, until: Int?) {
    let (shares, place) = (entries[ticket.place].shares, entries[ticket.place].place)
    usesToServe += shares.map(\.use)
    if let until {
      calls.remove(Call(until: until, ticket: ticket))
      for share in shares { uses[share.use].called.remove(ticket, share) }
    } else {
      for share in shares {
        uses[share.use].passed[place]?.load.remove(ticket, share)
        if uses[share.use].passed[place]?.load.count == 0 { uses[share.use].passed[place] = nil }
      }
      passed[place]?.remove(entries[ticket.place].rank)
      if passed[place]?.isEmpty == true { passed[place] = nil }
    }
  }

  /// Lets the first member that others pass, because its group was full, wait again, so that it can take the slot of
  /// another member together with its keys.
  private mutating func recallFirst(of place: KeyPlace) {
    while let ticket = passed[place]?.first?.ticket {
      withdrawCall(of: ticket)
      endCall(ticket, until: nil)
      enterLines(ticket)
      if entries[ticket.place].shares.allSatisfy({ uses[$0.use].holders.admits($0) }) { return }
    }
  }

  // MARK: Starting

  /// Takes the keys of a claimant that is started and occupies a slot, if they are free and it has been called. Otherwise
  /// it waits again, and holds its keys when its turn has come.
  mutating func start(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard let state = state(of: ticket), !state.isHolding else { return }
    leavePosition(ticket)
    entries[ticket.place].place = .none
    if state.isCalled, entries[ticket.place].shares.allSatisfy({ uses[$0.use].holders.admits($0) }) {
      hold(ticket, &effects)
    } else {
      wait(ticket, &effects)
    }
    serve(&effects)
  }

  /// Lets a member that has been called take its keys and a slot. Otherwise it waits for its keys, or is called again.
  mutating func callAgain(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard let state = state(of: ticket), state.isCalled else { return }
    leavePosition(ticket)
    wait(ticket, &effects)
    serve(&effects)
  }

  private mutating func hold(_ ticket: Ticket, _ effects: inout [Effect]) {
    entries[ticket.place].state = .holding
    guard let claimant = claimants[ticket.place] else { return }
    for share in entries[ticket.place].shares {
      uses[share.use].patienceEnd = nil
      // A priority that was lent to a claimant that waits reaches the next holder.
      if let next = uses[share.use].first, let priority = entries[next.place].lent {
        effects.append(.lend(priority, claimant))
      }
      guard let interval = share.interval else {
        uses[share.use].holders.add(ticket, share)
        continue
      }
      let start = Start(ticket: Ticket(number: nextNumber, place: -1), share: share, interval: interval)
      nextNumber += 1
      uses[share.use].claimCount += 1
      uses[share.use].holders.add(start.ticket, share)
      effects.append(.count(start, claimant))
    }
  }

  /// Ends a start that has left the window of its throttle.
  mutating func end(_ start: Start, _ effects: inout [Effect]) {
    uses[start.share.use].holders.remove(start.ticket, start.share)
    usesToServe.append(start.share.use)
    serve(&effects)
    release(start.share.use, &effects)
  }

  // MARK: Time

  /// When to call ``timeDidPass(_:)``.
  var deadline: Int? {
    guard let call = calls.first?.until else { return searchTime }
    return min(call, searchTime ?? call)
  }

  /// Lets the next claimants pass those that have not been started in time.
  mutating func timeDidPass(_ effects: inout [Effect]) {
    while let call = calls.first, call.until <= now {
      endCall(call.ticket, until: call.until)
      pass(call.ticket)
    }
    serve(&effects)
  }

  private mutating func suspectDeadlock(of ticket: Ticket) {
    if entries[ticket.place].holder != nil { suspectDeadlock() }
  }

  /// A search costs more with more entries.
  mutating func suspectDeadlock() { if searchTime == nil { searchTime = now + 20 + entries.count / 200 } }

  mutating func beginSearch() -> Bool {
    guard let time = searchTime, time <= now else { return false }
    searchTime = nil
    return true
  }

  /// Lets a member pass all that wait before it, because they wait for a holder around it.
  mutating func prefer(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard state(of: ticket) == .waiting else { return }
    entries[ticket.place].isPreferred = true
    if hasTurn(ticket) { serve(ticket, &effects) }
    serve(&effects)
  }

  // MARK: Leaving

  /// Gives back the keys, and a slot with them, or leaves the wait queues. The claimant keeps its number.
  mutating func stepAside(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard entries.contains(ticket) else { return }
    withdrawCall(of: ticket)
    leavePosition(ticket)
    entries[ticket.place].state = .away
    for share in entries[ticket.place].shares { uses[share.use].away.insert(ticket) }
    serve(&effects)
  }

  /// Removes a claimant. If it lends its keys, they are held until those that use them have left.
  mutating func leave(_ ticket: Ticket, lends: Bool = false, _ effects: inout [Effect]) {
    guard let entry = self[ticket] else { return }
    if lends, entry.loans > 0, entry.state.isHolding {
      entries[ticket.place].state = .lending
      return
    }
    remove([ticket], &effects)
  }

  private mutating func remove(_ tickets: [Ticket], _ effects: inout [Effect]) {
    var ended: [Entry] = []
    var rest = tickets
    while let ticket = rest.popLast() {
      withdrawCall(of: ticket)
      leavePosition(ticket)
      let entry = entries[ticket.place]
      // The table may hold the last reference to a task that has ended.
      if entry.state == .lending, let claimant = claimants[ticket.place] { effects.append(.release(claimant)) }
      claimants[ticket.place] = nil
      entries.remove(ticket.place)
      ended.append(entry)
      for share in entry.shares {
        guard let number = uses[share.use].id.holder,
          let lender = entry.enclosing.first(where: { $0.number == number }), entries.contains(lender)
        else { continue }
        entries[lender.place].loans -= 1
        if entries[lender.place].loans == 0, entries[lender.place].state == .lending { rest.append(lender) }
      }
    }
    serve(&effects)
    for share in ended.flatMap(\.shares) { release(share.use, &effects) }
    if entries.isEmpty { (claimants, blocked) = ([], [:]) }
  }

  private func withdrawCall(of ticket: Ticket) {
    if entries[ticket.place].state == .called(until: nil) { claimants[ticket.place]?.callWasWithdrawn() }
  }

  /// Ends what a claimant occupies in its state.
  private mutating func leavePosition(_ ticket: Ticket) {
    let (shares, state) = (entries[ticket.place].shares, entries[ticket.place].state)
    switch state {
    case .away: for share in shares { uses[share.use].away.remove(ticket) }
    case .waiting: endWait(ticket)
    case .called(let until):
      endCall(ticket, until: until)
      for share in shares where uses[share.use].called.count == 0 && uses[share.use].passed.isEmpty {
        uses[share.use].patienceEnd = nil
      }
    case .holding, .replaced, .lending:
      for share in shares where share.interval == nil {
        if state.isReplaced { uses[share.use].replacedCount -= 1 }
        uses[share.use].holders.remove(ticket, share)
        usesToServe.append(share.use)
      }
      guard case .group = entries[ticket.place].place else { return }
      claimants[ticket.place]?.returnSlot()
      recallFirst(of: entries[ticket.place].place)
    }
  }

  private mutating func release(_ use: Int, _ effects: inout [Effect]) {
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

  // MARK: Policies

  /// Returns false if the claimant is dropped.
  private mutating func applyPolicies(
    of claimant: Claimant,
    _ claims: [KeyClaim],
    inside enclosing: [Ticket],
    _ effects: inout [Effect]
  ) -> Bool {
    for claim in claims where claim.policy == .drop {
      guard let owner = self.claimant(of: useID(of: claim, inside: enclosing)) else { continue }
      effects.append(.cancel(claimant, .excluded(from: claim.key, by: owner)))
      return false
    }
    var replaced: [Ticket: ExclusivityPolicy] = [:]
    for claim in claims where claim.policy == .replace || claim.policy == .latest {
      guard let use = useIndices[useID(of: claim, inside: enclosing)].map({ uses[$0] }) else { continue }
      // Without this check, n claimants that replace each other would read n replaced holders each.
      let replacesHolders = claim.policy == .replace && use.replacedCount < use.holders.count
      for ticket in use.claimants + (replacesHolders ? use.holders.tickets : []) where replaced[ticket] != .replace {
        replaced[ticket] = claim.policy
      }
    }
    var waiting: [Ticket] = []
    for (ticket, policy) in replaced.sorted(by: { $0.key > $1.key }) {
      guard let state = state(of: ticket), !state.isReplaced, state != .lending else { continue }
      let refusal = policy == .replace ? Refusal.replaced(by: claimant) : nil
      if let other = self.claimant(ticket) { effects.append(.cancel(other, refusal)) }
      if state.isHolding {
        entries[ticket.place].state = .replaced(until: now + 20)
        for share in entries[ticket.place].shares { uses[share.use].replacedCount += 1 }
      } else {
        waiting.append(ticket)
      }
    }
    remove(waiting, &effects)
    return true
  }
}
