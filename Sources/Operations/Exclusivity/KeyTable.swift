/// A part of a request for keys: one key, the limit that it is requested with, and its policy.
struct KeyClaim {
  let domain: ExclusivityDomain
  let key: ExclusivityKey
  var limit = Int.max
  var weight = 1
  var throttles: [KeyThrottle] = []
  var policy = ExclusivityPolicy.wait
}

/// The progress of a claimant towards its keys.
enum KeyState: Hashable {
  /// Stands in the lines of its keys.
  case waiting
  /// May be started, and then takes its keys or finds them taken. It holds nothing. Until this time, no claimant behind it
  /// is called for its keys. Nil when the time has passed.
  case called(until: Int?)
  case holding
  /// Holds its keys, and is about to be cancelled because a newer claimant replaces it.
  case replaced

  var isHolding: Bool { self == .holding || self == .replaced }
}

/// The claimants that hold keys, and the claimants that wait for keys.
///
/// A claimant stands in the lines of all its keys. It is called when it is the first in all of them and they admit it. A
/// called claimant that is started takes all its keys at once, unless others have taken some of them meanwhile. It is then
/// the first in line again.
///
/// The members of a holder stand in lines of their own, so that the order of waiting never causes a deadlock.
struct KeyTable<Claimant> {
  typealias Ticket = KeyTicket

  struct Claim {
    let use: Int
    let limit: Int
    let weight: Int
    var throttles: [KeyThrottle]
  }

  struct Entry {
    let ticket: Ticket
    let claimant: Claimant
    var claims: [Claim]
    /// The entries of the enclosing operations, innermost first.
    let enclosing: [Ticket]
    /// The innermost of them that holds keys. Its members share lines.
    let line: Int?
    /// Whether the claimant has been started, so that it holds its keys when it is called.
    var isStarted: Bool
    var state = KeyState.waiting
    /// How often the claimant was started after its keys had been taken.
    var refusals = 0
    /// The timer of the window that the claimant waits for.
    var timer: ClockTimer?
  }

  /// What the caller must do after releasing the lock, in the order of the effects.
  enum Effect {
    /// It is the claimant's turn. One that has been started holds its keys.
    case call(Claimant, holdsKeys: Bool)
    /// The claimant starts, and must read its clock for this start.
    case time(KeyStart, Claimant)
    case wait(Claimant, Delay)
    case stop(ClockTimer)
    case cancel(Claimant, Refusal?)
    /// The keys are no longer in use. Their values may hold the last references to objects of the program.
    case release([KeyUse.ID])
  }

  /// The reason why a claimant is cancelled.
  enum Refusal {
    case excluded(from: ExclusivityKey, by: Claimant)
    case replaced(by: Claimant)
    /// The claimant would wait forever.
    case deadlock(ExclusivityKey, holder: Claimant?)
  }

  /// The time in milliseconds, which the caller sets before each change.
  var now = 0
  private(set) var entries = SlotList<Entry>()
  var uses = SlotList<KeyUse>()
  private(set) var useIndices: [KeyUse.ID: Int] = [:]
  var logs: [KeyUse.ID: StartLog] = [:]
  var startCount = 0
  /// When to search for a deadlock, if one may have closed since the last search.
  private(set) var searchTime: Int?
  private var nextNumber = 0
  /// The calls that may not have been answered, by the number of refusals before them. Each list is in order of time.
  private var calls: [ArrayDeque<(ticket: Ticket, until: Int)>] = []
  /// The uses whose first waiter may have become callable.
  var usesToServe: [Int] = []

  subscript(ticket: Ticket) -> Entry? {
    get { entries.contains(ticket) ? entries[ticket.place] : nil }
    set { entries[ticket.place] = newValue }
  }

  func state(of ticket: Ticket) -> KeyState? { entries.contains(ticket) ? entries[ticket.place]?.state : nil }

  // MARK: Entering

  /// Applies the policies of a claimant, which then stands in its lines or, if it is its turn, has been called. Returns nil
  /// if the claimant is dropped.
  mutating func enter(
    _ claimant: Claimant,
    _ requested: [KeyClaim],
    inside enclosing: [Ticket] = [],
    isStarted: Bool,
    _ effects: inout [Effect]
  ) -> Ticket? {
    if requested.contains(where: { $0.policy != .wait }),
      !applyPolicies(of: claimant, requested, inside: enclosing, &effects)
    {
      return nil
    }
    let claims = requested.map { claim in
      let use = index(of: useID(of: claim, inside: enclosing))
      uses[use]?.claimCount += 1
      return Claim(use: use, limit: claim.limit, weight: claim.weight, throttles: claim.throttles)
    }
    let ticket = Ticket(number: nextNumber, place: entries.nextIndex)
    nextNumber += 1
    let line = enclosing.first { state(of: $0)?.isHolding == true }?.number
    let entry = Entry(
      ticket: ticket,
      claimant: claimant,
      claims: claims,
      enclosing: enclosing,
      line: line,
      isStarted: isStarted
    )
    entries.insert(entry)
    stand(entry)
    if isCallable(ticket, &effects) {
      call(ticket, &effects)
    } else if line != nil {
      suspectDeadlock()
    }
    serve(&effects)
    return ticket
  }

  /// Returns the use of the key among the members of the innermost enclosing holder of the key, or else in the program.
  func useID(of claim: KeyClaim, inside enclosing: [Ticket]) -> KeyUse.ID {
    let holder = enclosing.first { ticket in
      guard let entry = self[ticket], entry.state.isHolding else { return false }
      return has(entry, claim.key, in: claim.domain)
    }
    return KeyUse.ID(domain: claim.domain, key: claim.key, holder: holder?.number)
  }

  private mutating func index(of id: KeyUse.ID) -> Int {
    let new = uses.nextIndex
    // In place, because a look-up and an insertion would hash the key twice.
    let index = { (index: inout Int) in index }(&useIndices[id, default: new])
    if index == new { uses.insert(KeyUse(id)) }
    return index
  }

  private mutating func stand(_ entry: Entry) {
    for claim in entry.claims { uses[claim.use]?.stand(entry.ticket, in: entry.line) }
  }

  // MARK: Calling

  /// Calls every claimant whose turn it is because of a change of ``usesToServe``.
  mutating func serve(_ effects: inout [Effect]) {
    while let use = usesToServe.popLast() {
      while let ticket = nextCallable(in: use, &effects) {
        call(ticket, &effects)
        guard let entry = self[ticket] else { continue }
        effects.append(.call(entry.claimant, holdsKeys: entry.isStarted))
      }
    }
  }

  /// The first claimants of all lines, in the order of their arrival.
  private mutating func nextCallable(in use: Int, _ effects: inout [Effect]) -> Ticket? {
    trimLines(of: use)
    guard uses[use]?.hasWaiters == true, uses[use]?.admitsMore == true else { return nil }
    for ticket in uses[use]?.firstWaiters ?? [] where isCallable(ticket, &effects) { return ticket }
    return nil
  }

  private mutating func isCallable(_ ticket: Ticket, _ effects: inout [Effect]) -> Bool {
    guard let entry = self[ticket], entry.state == .waiting else { return false }
    for claim in entry.claims {
      trimLines(of: claim.use)
      guard let use = uses[claim.use], use.first(in: entry.line) == ticket,
        use.admits(weight: claim.weight, limit: claim.limit, besideCalled: true)
      else { return false }
    }
    return isOpen(entry, &effects)
  }

  private mutating func trimLines(of use: Int) {
    guard uses[use]?.isTrimmed == false else { return }
    let entries = entries
    uses[use]?.trim { entries.contains($0) }
  }

  private mutating func call(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard var entry = self[ticket] else { return }
    for claim in entry.claims {
      uses[claim.use]?.leaveFront(of: entry.line)
      usesToServe.append(claim.use)
    }
    if entry.isStarted { return hold(&entry, &effects) }
    let patience = 20 << min(entry.refusals, 9)
    entry.state = .called(until: now + patience)
    for claim in entry.claims {
      uses[claim.use]?.called.add(ticket, weight: claim.weight, limit: claim.limit)
      if !claim.throttles.isEmpty { noteCall(under: claim, 1) }
    }
    note(ticket, until: now + patience, after: min(entry.refusals, 9))
    self[ticket] = entry
  }

  private mutating func note(_ ticket: Ticket, until time: Int, after refusals: Int) {
    while calls.count <= refusals { calls.append(ArrayDeque()) }
    // Most calls have been answered when the next one is made.
    while let first = calls[refusals].first, state(of: first.ticket) != .called(until: first.until) {
      calls[refusals].popFirst()
    }
    calls[refusals].append((ticket, time))
  }

  private mutating func hold(_ entry: inout Entry, _ effects: inout [Effect]) {
    entry.state = .holding
    for claim in entry.claims { uses[claim.use]?.holders.add(entry.ticket, weight: claim.weight, limit: claim.limit) }
    noteStart(of: entry, &effects)
    self[entry.ticket] = entry
  }

  /// Ends the time in which no claimant behind this one is called.
  private mutating func endCall(_ entry: Entry) {
    for claim in entry.claims {
      if case .called(nil) = entry.state {
        uses[claim.use]?.passed.remove(entry.ticket)
      } else {
        uses[claim.use]?.called.remove(entry.ticket, weight: claim.weight, limit: claim.limit)
        if !claim.throttles.isEmpty { noteCall(under: claim, -1) }
      }
      usesToServe.append(claim.use)
    }
  }

  // MARK: Starting

  /// A claimant that is started takes its keys, if it has been called and they admit it. Otherwise it is first in line
  /// again, and stays started if `waits`. Returns whether the claimant has taken its keys by this call.
  mutating func start(_ ticket: Ticket, waits: Bool, _ effects: inout [Effect]) -> Bool {
    guard var entry = self[ticket], !entry.state.isHolding else { return false }
    defer { serve(&effects) }
    if case .called = entry.state {
      endCall(entry)
      let areFree = entry.claims.allSatisfy { claim in
        uses[claim.use]?.admits(weight: claim.weight, limit: claim.limit, besideCalled: false) == true
      }
      if areFree, isOpen(entry, &effects) {
        entry.isStarted = true
        hold(&entry, &effects)
        return true
      }
      entry.state = .waiting
      entry.refusals += 1
      stand(entry)
      if entry.line != nil { suspectDeadlock() }
    }
    if waits { entry.isStarted = true }
    self[ticket] = entry
    return false
  }

  // MARK: Time

  /// When to call ``timeDidPass(_:)``.
  var deadline: Int? {
    let times = calls.compactMap { $0.first?.until } + [searchTime].compactMap(\.self)
    return times.min()
  }

  /// Lets the next claimants pass those that have not been started in time.
  mutating func timeDidPass(_ effects: inout [Effect]) {
    for refusals in calls.indices {
      while let first = calls[refusals].first, first.until <= now {
        calls[refusals].popFirst()
        guard var entry = self[first.ticket], entry.state == .called(until: first.until) else { continue }
        endCall(entry)
        entry.state = .called(until: nil)
        for claim in entry.claims { uses[claim.use]?.passed.insert(entry.ticket) }
        self[first.ticket] = entry
      }
    }
    serve(&effects)
  }

  /// A search costs more with more entries.
  mutating func suspectDeadlock() {
    if searchTime == nil { searchTime = now + 20 + entries.count / 200 }
  }

  mutating func beginSearch() -> Bool {
    guard let time = searchTime, time <= now else { return false }
    searchTime = nil
    return true
  }

  // MARK: Leaving

  mutating func leave(_ ticket: Ticket, _ effects: inout [Effect]) {
    guard let entry = remove(ticket, &effects) else { return }
    serve(&effects)
    removeClaims(of: entry, &effects)
  }

  /// A ticket stays in its lines until it is in front.
  private mutating func remove(_ ticket: Ticket, _ effects: inout [Effect]) -> Entry? {
    guard let entry = self[ticket] else { return nil }
    entries.remove(ticket.place)
    if let timer = entry.timer { effects.append(.stop(timer)) }
    if case .called = entry.state { endCall(entry) }
    for claim in entry.claims {
      if entry.state == .waiting { uses[claim.use]?.didLeaveLine() }
      if entry.state == .replaced { uses[claim.use]?.replacedCount -= 1 }
      if entry.state.isHolding {
        uses[claim.use]?.holders.remove(ticket, weight: claim.weight, limit: claim.limit)
      }
      usesToServe.append(claim.use)
    }
    return entry
  }

  private mutating func removeClaims(of entry: Entry, _ effects: inout [Effect]) {
    for claim in entry.claims {
      uses[claim.use]?.claimCount -= 1
      guard let use = uses[claim.use], use.claimCount == 0 else { continue }
      if let position = useIndices.index(forKey: use.id) {
        let equal = useIndices.remove(at: position).key
        if use.id.key.hasValue { effects.append(.release([use.id, equal])) }
      }
      uses.remove(claim.use)
    }
    useIndices.giveBackRoom()
    if entries.isEmpty { calls = [] }
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
      guard let use = useIndices[id].flatMap({ uses[$0] }) else { continue }
      var tickets = use.waiting + use.passed
      if claim.policy == .replace {
        tickets += use.called.tickets
        // Without this check, n claimants that replace each other would read n replaced holders each.
        if use.replacedCount < use.holders.tickets.count { tickets += use.holders.tickets }
      }
      for ticket in tickets where replaced[ticket] != .replace { replaced[ticket] = claim.policy }
    }
    var removed: [Entry] = []
    for (ticket, policy) in replaced.sorted(by: { $0.key > $1.key }) {
      guard var entry = self[ticket], entry.state != .replaced else { continue }
      effects.append(.cancel(entry.claimant, policy == .replace ? .replaced(by: claimant) : nil))
      if entry.state == .holding {
        entry.state = .replaced
        for claim in entry.claims { uses[claim.use]?.replacedCount += 1 }
        self[ticket] = entry
      } else if let entry = remove(ticket, &effects) {
        removed.append(entry)
      }
    }
    serve(&effects)
    for entry in removed { removeClaims(of: entry, &effects) }
    return true
  }
}

extension SlotList {
  fileprivate func contains<Claimant>(_ ticket: KeyTicket) -> Bool where Element == KeyTable<Claimant>.Entry {
    indices.contains(ticket.place) && self[ticket.place]?.ticket == ticket
  }
}
