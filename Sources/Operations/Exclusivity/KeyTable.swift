/// The claimants that hold keys, and the claimants that wait for keys.
///
/// A claimant enters the wait queues of all its keys. It is called when it is the first in all of them and they admit it.
/// When it is started, it takes all its keys at once, or finds some taken and is the first waiter again. The members of a
/// holder have wait queues of their own, so that the order of waiting never causes a deadlock.
struct KeyTable<Claimant> {
  typealias Ticket = KeyTicket
  typealias Entry = KeyEntry

  /// What the caller must do after releasing the lock, in the order of the effects.
  enum Effect {
    /// It is the claimant's turn. One that has been started holds its keys.
    case call(Claimant, holdsKeys: Bool)
    /// The claimant starts, and must read its clock for this start.
    case time(KeyStart, Claimant)
    case wait(Claimant, Delay)
    case stop(ClockTimer)
    case cancel(Claimant, Refusal?)
    /// Keys that are no longer in use, or starts of an earlier window. They may hold the last references to objects of
    /// the program.
    case release(Any)
  }

  /// The reason why a claimant is cancelled.
  enum Refusal {
    case excluded(from: ExclusivityKey, by: Claimant)
    case replaced(by: Claimant)
    /// The claimant would wait forever.
    case deadlock(ExclusivityKey, holder: Claimant?)
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
  var logs: [KeyUse.ID: StartLog] = [:]
  var startCount = 0
  /// When to search for a deadlock, if one may have closed since the last search.
  private(set) var searchTime: Int?
  private var nextNumber = 0
  private var calls = ArrayDeque<Call>()
  /// The uses whose first waiter may have become callable.
  var usesToServe: [Int] = []

  subscript(ticket: Ticket) -> Entry? { entries.contains(ticket) ? entries[ticket.place] : nil }

  func state(of ticket: Ticket) -> KeyState? { entries.contains(ticket) ? entries[ticket.place].state : nil }

  func isCalled(_ ticket: Ticket) -> Bool { if case .called? = state(of: ticket) { true } else { false } }

  func claimant(_ ticket: Ticket) -> Claimant? { entries.contains(ticket) ? claimants[ticket.place] : nil }

  // MARK: Entering

  /// Adds a claimant, which waits or, if it is its turn, has been called. Returns nil if it is dropped.
  mutating func enter(
    _ claimant: Claimant,
    _ requested: [KeyClaim],
    inside enclosing: [Ticket] = [],
    from origin: ObjectIdentifier? = nil,
    isStarted: Bool,
    _ effects: inout [Effect]
  ) -> Ticket? {
    if requested.contains(where: { $0.policy != .wait }),
      !applyPolicies(of: claimant, requested, inside: enclosing, &effects)
    {
      return nil
    }
    let ticket = Ticket(number: nextNumber, place: entries.nextIndex)
    nextNumber += 1
    var entry = Entry(
      ticket: ticket,
      enclosing: enclosing,
      waitQueue: enclosing.first { state(of: $0)?.isHolding == true }?.number,
      origin: origin,
      isStarted: isStarted
    )
    for claim in requested {
      let use = index(of: useID(of: claim, inside: enclosing))
      uses[use].claimCount += 1
      entry.shares.append(Entry.Share(use: use, limit: claim.limit, weight: claim.weight))
      if !claim.throttles.isEmpty { entry.throttled.append((use, claim.throttles)) }
    }
    if ticket.place == claimants.count { claimants.append(claimant) } else { claimants[ticket.place] = claimant }
    entries.insert(entry)
    if isCallable(ticket, &effects) {
      call(ticket, &effects)
    } else {
      wait(ticket)
      suspectDeadlock(of: ticket)
    }
    return ticket
  }

  /// Returns the use of the key among the members of the innermost enclosing holder of the key, or else in the program.
  func useID(of claim: KeyClaim, inside enclosing: [Ticket]) -> KeyUse.ID {
    let holder = enclosing.first { state(of: $0)?.isHolding == true && has($0, claim.key, in: claim.domain) }
    return KeyUse.ID(domain: claim.domain, key: claim.key, holder: holder?.number)
  }

  private mutating func index(of id: KeyUse.ID) -> Int {
    let next = uses.nextIndex
    // Inserts a new index, so that the key is hashed once.
    let index = { (index: inout Int) in index }(&useIndices[id, default: next])
    if index == next { uses.insert(KeyUse(id)) }
    return index
  }

  private mutating func wait(_ ticket: Ticket) {
    let entry = entries[ticket.place]
    for share in entry.shares { uses[share.use].wait(ticket, in: entry.waitQueue) }
  }

  private mutating func endWait(_ ticket: Ticket) {
    let entry = entries[ticket.place]
    for share in entry.shares {
      uses[share.use].endWait(ticket, in: entry.waitQueue)
      usesToServe.append(share.use)
    }
  }

  // MARK: Calling

  /// Calls every claimant whose turn it is because of a change of ``usesToServe``.
  mutating func serve(_ effects: inout [Effect]) {
    while let use = usesToServe.popLast() {
      while let ticket = nextCallable(in: use, &effects) {
        endWait(ticket)
        call(ticket, &effects)
        guard let claimant = claimant(ticket) else { continue }
        effects.append(.call(claimant, holdsKeys: entries[ticket.place].isStarted))
      }
    }
  }

  private mutating func nextCallable(in use: Int, _ effects: inout [Effect]) -> Ticket? {
    guard uses[use].hasWaiters, uses[use].admitsMore else { return nil }
    for ticket in uses[use].firstWaiters where isCallable(ticket, &effects) { return ticket }
    return nil
  }

  private mutating func isCallable(_ ticket: Ticket, _ effects: inout [Effect]) -> Bool {
    let waitQueue = entries[ticket.place].waitQueue
    for share in entries[ticket.place].shares {
      let first = uses[share.use].first(in: waitQueue) ?? ticket
      guard first == ticket, uses[share.use].admits(share, besideCalled: true) else { return false }
    }
    return isOpen(ticket, &effects)
  }

  private mutating func call(_ ticket: Ticket, _ effects: inout [Effect]) {
    if entries[ticket.place].isStarted { return hold(ticket, &effects) }
    let (shares, origin) = (entries[ticket.place].shares, entries[ticket.place].origin)
    if origin != nil, shares.contains(where: { uses[$0.use].passed[origin] != nil }) { return pass(ticket) }
    let patience = shares.map { uses[$0.use].id.domain.patience }.max() ?? 0
    // At most 10 s.
    let until = now + (patience << min(entries[ticket.place].refusals, 9))
    entries[ticket.place].state = .called(until: until)
    calls.insert(Call(until: until, ticket: ticket))
    for share in shares { uses[share.use].called.add(ticket, share) }
    noteCall(of: ticket, 1)
  }

  private mutating func hold(_ ticket: Ticket, _ effects: inout [Effect]) {
    entries[ticket.place].state = .holding
    for share in entries[ticket.place].shares { uses[share.use].holders.add(ticket, share) }
    noteStart(of: ticket, &effects)
  }

  /// Lets others under the same keys be called as well.
  private mutating func pass(_ ticket: Ticket) {
    entries[ticket.place].state = .called(until: nil)
    let (shares, origin) = (entries[ticket.place].shares, entries[ticket.place].origin)
    for share in shares { uses[share.use].passed[origin, default: []].insert(ticket) }
  }

  private mutating func endCall(_ ticket: Ticket) {
    guard case .called(let until) = entries[ticket.place].state else { return }
    let (shares, origin) = (entries[ticket.place].shares, entries[ticket.place].origin)
    usesToServe += shares.map(\.use)
    guard let until else {
      for share in shares {
        uses[share.use].passed[origin]?.remove(ticket)
        if uses[share.use].passed[origin]?.isEmpty == true { uses[share.use].passed[origin] = nil }
      }
      return
    }
    calls.remove(Call(until: until, ticket: ticket))
    for share in shares { uses[share.use].called.remove(ticket, share) }
    noteCall(of: ticket, -1)
  }

  // MARK: Starting

  /// Takes the keys of a called claimant, or makes it the first waiter again. It stays started if `waits`. Returns whether
  /// this call has taken the keys.
  mutating func start(_ ticket: Ticket, waits: Bool, _ effects: inout [Effect]) -> Bool {
    guard let state = state(of: ticket), !state.isHolding else { return false }
    defer { serve(&effects) }
    if state != .waiting {
      endCall(ticket)
      let areFree = entries[ticket.place].shares.allSatisfy { uses[$0.use].admits($0, besideCalled: false) }
      if areFree, isOpen(ticket, &effects) {
        entries[ticket.place].isStarted = true
        hold(ticket, &effects)
        return true
      }
      entries[ticket.place].state = .waiting
      entries[ticket.place].refusals += 1
      wait(ticket)
      suspectDeadlock(of: ticket)
    }
    if waits { entries[ticket.place].isStarted = true }
    return false
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
      endCall(call.ticket)
      pass(call.ticket)
    }
    serve(&effects)
  }

  private mutating func suspectDeadlock(of ticket: Ticket) {
    if entries[ticket.place].waitQueue != nil { suspectDeadlock() }
  }

  /// A search costs more with more entries.
  mutating func suspectDeadlock() { if searchTime == nil { searchTime = now + 20 + entries.count / 200 } }

  mutating func beginSearch() -> Bool {
    guard let time = searchTime, time <= now else { return false }
    searchTime = nil
    return true
  }

  // MARK: Leaving

  mutating func leave(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard entries.contains(ticket) else { return }
    let shares = remove(ticket, &effects)
    serve(&effects)
    release(shares, &effects)
  }

  /// Returns the shares, whose uses the caller releases when they have been served.
  private mutating func remove(_ ticket: Ticket, _ effects: inout [Effect]) -> [Entry.Share] {
    let (shares, state) = (entries[ticket.place].shares, entries[ticket.place].state)
    switch state {
    case .waiting: endWait(ticket)
    case .called: endCall(ticket)
    case .holding, .replaced:
      for share in shares {
        if state.isReplaced { uses[share.use].replacedCount -= 1 }
        uses[share.use].holders.remove(ticket, share)
        usesToServe.append(share.use)
      }
    }
    if let timer = entries[ticket.place].timer { effects.append(.stop(timer)) }
    claimants[ticket.place] = nil
    entries.remove(ticket.place)
    return shares
  }

  private mutating func release(_ shares: [Entry.Share], _ effects: inout [Effect]) {
    for share in shares {
      uses[share.use].claimCount -= 1
      if uses[share.use].claimCount > 0 { continue }
      let id = uses[share.use].id
      if let position = useIndices.index(forKey: id) {
        let equal = useIndices.remove(at: position).key
        if id.key.hasValue { effects.append(.release((id, equal))) }
      }
      uses.remove(share.use)
    }
    useIndices.giveBackRoom()
    if entries.isEmpty { claimants = [] }
  }

  // MARK: Policies

  /// Returns false if the claimant is dropped.
  private mutating func applyPolicies(
    of claimant: Claimant,
    _ requested: [KeyClaim],
    inside enclosing: [Ticket],
    _ effects: inout [Effect]
  ) -> Bool {
    for claim in requested where claim.policy == .drop {
      guard let owner = self.claimant(of: useID(of: claim, inside: enclosing)) else { continue }
      effects.append(.cancel(claimant, .excluded(from: claim.key, by: owner)))
      return false
    }
    var replaced: [Ticket: ExclusivityPolicy] = [:]
    for claim in requested where claim.policy == .replace || claim.policy == .latest {
      let id = useID(of: claim, inside: enclosing)
      guard let use = useIndices[id].map({ uses[$0] }) else { continue }
      var tickets = use.waiting + use.passed.values.flatMap(\.self)
      if claim.policy == .replace {
        tickets += use.called.tickets
        // Without this check, n claimants that replace each other would read n replaced holders each.
        if use.replacedCount < use.holders.count { tickets += use.holders.tickets }
      }
      for ticket in tickets where replaced[ticket] != .replace { replaced[ticket] = claim.policy }
    }
    var shares: [Entry.Share] = []
    for (ticket, policy) in replaced.sorted(by: { $0.key > $1.key }) {
      guard let state = state(of: ticket), !state.isReplaced else { continue }
      let refusal = policy == .replace ? Refusal.replaced(by: claimant) : nil
      if let other = self.claimant(ticket) { effects.append(.cancel(other, refusal)) }
      if state == .holding {
        entries[ticket.place].state = .replaced(until: now + 20)
        for share in entries[ticket.place].shares { uses[share.use].replacedCount += 1 }
      } else {
        shares += remove(ticket, &effects)
      }
    }
    serve(&effects)
    release(shares, &effects)
    return true
  }
}
