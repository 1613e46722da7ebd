import Testing

@testable import Operations

/// The table of keys as a value, where no operation shows what it decides.
struct KeyTableTests {
  private static let domain = ExclusivityDomain()
  private var table = KeyTable()
  private var effects: [KeyTable.Effect] = []
  private var group = TestGroup(0)

  private static let homes = (0..<4).map { _ in ExclusivityDomain() }

  private func queue(_ number: Int) -> KeyPlace { .queue(ObjectIdentifier(Self.homes[number])) }

  private mutating func enter(
    _ name: String,
    _ keys: [ExclusivityKey: Int],
    weight: Int = 1,
    inside enclosing: [KeyTicket] = [],
    at place: KeyPlace = .started,
    inGroup: Bool = false
  ) -> KeyTicket {
    let claims = keys.sorted { $0.key.description < $1.key.description }.map { key, limit in
      KeyClaim(domain: Self.domain, key: key, limit: limit, weight: weight)
    }
    let claimant = TestClaimant(name, inGroup ? group.room : nil)
    claimant.claims = claims
    if inGroup {
      group.enter(claimant, inside: enclosing, in: &table, &effects)
      table.serve(&effects)
    } else {
      table.enter(claimant, inside: enclosing, at: place, &effects)
    }
    while group.answer(&table, &effects) {}
    guard let ticket = claimant.ticket, state(ticket) != nil else {
      Issue.record("\(name) was dropped")
      return KeyTicket(number: -1, place: -1)
    }
    return ticket
  }

  private func state(_ ticket: KeyTicket) -> KeyState? { table.state(of: ticket) }

  private func isWaiting(_ ticket: KeyTicket) -> Bool { state(ticket) == .waiting }

  private func isCalled(_ ticket: KeyTicket) -> Bool { state(ticket)?.isCalled == true }

  private func isHolding(_ ticket: KeyTicket) -> Bool { state(ticket) == .holding }

  private var called: [String] {
    effects.compactMap { if case .call(let claimant, _) = $0 { claimant.name } else { nil } }
  }

  /// - Returns: The claimants that are called because of it.
  private mutating func leave(_ ticket: KeyTicket) -> [String] {
    effects = []
    table.leave(ticket, &effects)
    return called
  }

  private mutating func pass(_ milliseconds: Int) -> [String] {
    effects = []
    table.now += milliseconds
    table.timeDidPass(&effects)
    return called
  }

  private mutating func start(_ ticket: KeyTicket) -> Bool {
    effects = []
    table.comeBack(ticket, at: .started, &effects)
    return isHolding(ticket)
  }

  // MARK: Members

  /// The outsider before it waits for a holder that waits for the holder around it.
  @Test mutating func aMemberMayPassThoseThatWaitIndirectlyForItsHolder() {
    let (inner, outer) = (enter("inner", ["a": 1]), enter("outer", ["b": 1]))
    _ = enter("in inner", ["b": 1], inside: [inner])
    let outsider = enter("outsider", ["a": 1, "c": 1])
    let member = enter("member", ["c": 1], inside: [outer])
    #expect(isWaiting(member) && table.mayPass(member) && !table.mayPass(outsider))
    table.prefer(member, &effects)
    #expect(isHolding(member))
  }

  @Test mutating func aMemberPassesThoseThatWaitForItsHolder() {
    let group = enter("group", ["a": 1])
    let outsider = enter("outsider", ["a": 1, "b": 1])
    let member = enter("member", ["b": 1], inside: [group])
    #expect(isWaiting(outsider) && isHolding(member))
  }

  @Test mutating func aHolderWhoseKeysAreInUseInside_lendsThemUntilTheyAreFree() {
    let group = enter("group", ["a": 1])
    let member = enter("member", ["a": 1], inside: [group])
    table.leave(group, lends: true, &effects)
    #expect(state(group) == .lending)
    #expect(leave(member).isEmpty && table.isEmpty)
  }

  /// The first holder also holds the key of the same name in another domain, exclusively.
  @Test(arguments: [
    (2, 1, 1, 1), (.max, 1, 3, 1), (5, 3, 5, 4), (5, 3, 2, 1), (3, 3, 1, 1), (1, 1, 8, 3), (5, 3, 5, 3),
  ])
  mutating func aStrongerClaimInsideAHolder_isRefused(_ claims: (limit: Int, weight: Int, inner: Int, innerWeight: Int))
  {
    let group = TestClaimant("group")
    group.claims = [
      KeyClaim(domain: Self.homes[0], key: "a", limit: 1),
      KeyClaim(domain: Self.domain, key: "a", limit: claims.limit, weight: claims.weight),
    ]
    table.enter(group, &effects)
    let member = TestClaimant("member")
    member.claims = [KeyClaim(domain: Self.domain, key: "a", limit: claims.inner, weight: claims.innerWeight)]
    table.enter(member, inside: group.ticket.map { [$0] } ?? [], &effects)
    let isStronger = claims.limit > 1 && (claims.inner < claims.limit || claims.innerWeight > claims.weight)
    let state = member.ticket.flatMap { table.state(of: $0) }
    #expect(isStronger ? state == nil : state == .holding)
    guard isStronger else { return }
    guard case .cancel(_, .stronger("a", holder: let holder))? = effects.last else {
      Issue.record("not refused")
      return
    }
    #expect(holder === group)
  }

  // MARK: Tasks without entries

  @Test mutating func tasksThatShareOneKeyAndOneLimit_waitWithoutEntries() {
    let claim = { (limit: Int) in KeyClaim(domain: Self.domain, key: "a", limit: limit) }
    let tasks = (0..<6).map { TaskKeys([claim($0 == 5 ? 3 : 2)], ContinuousClock(), "\($0)", #function, #line) }
    let isHolding = tasks.map { table.arriveEarly($0, mayWait: { true }) }
    #expect(isHolding == [true, true, false, false, false, nil] && table.entries.isEmpty)
    #expect(table.leaveEarly(tasks[0]) === tasks[2] && table.leaveEarly(tasks[2]) === tasks[3])
    table.enterEarlyTasks()
    let names = [true, false].map { isHolding in
      table.claimants(of: "a", in: Self.domain, areHolding: isHolding).compactMap(\.name)
    }
    #expect(names == [["1", "3"], ["4"]])
    #expect(table.arriveEarly(tasks[5], mayWait: { true }) == nil, "the key is in use")
    for ticket in [1, 3, 4].compactMap({ tasks[$0].ticket }) { _ = leave(ticket) }
    #expect(table.isEmpty)
  }

  // MARK: Called claimants

  @Test mutating func aCalledClaimantIsWaitedForFor20Milliseconds() {
    let called = enter("called", ["a": 1], at: queue(0))
    let next = enter("next", ["a": 1], at: queue(1))
    #expect(isCalled(called) && isWaiting(next))
    #expect(pass(19).isEmpty)
    #expect(pass(1) == ["next"])
    #expect(start(next), "it holds nothing before its start")
    #expect(!start(called) && isWaiting(called))
    #expect(leave(next) == ["called"])
    #expect(isHolding(called) && leave(called).isEmpty && table.isEmpty)
  }

  @Test mutating func aClaimantThatWasPassed_takesItsFreeKeys() {
    let called = enter("called", ["a": 1, "b": 1], at: queue(0))
    let next = enter("next", ["a": 1], at: queue(1))
    #expect(pass(20) == ["next"])
    #expect(start(called), "the one that is started first takes the keys")
    #expect(!start(next) && isWaiting(next))
    #expect(leave(called) == ["next"] && isHolding(next))
  }

  @Test mutating func fullQueuesDelayOthersOnce() {
    for number in 0..<3 { _ = enter("full \(number)", ["a": 1], at: queue(number)) }
    let other = enter("other", ["a": 1], at: queue(3))
    #expect(pass(19).isEmpty)
    #expect(pass(1) == ["full 1", "full 2", "other"] && isCalled(other))
  }

  @Test mutating func theNextOneIsWaitedForAnew_whenACalledClaimantHasLeft() {
    let holder = enter("holder", ["b": 1])
    let called = enter("called", ["a": 1], at: queue(0))
    _ = enter("both", ["a": 1, "b": 1], at: queue(1))
    let next = enter("next", ["a": 1], at: queue(2))
    #expect(leave(called).isEmpty && pass(20).isEmpty)
    #expect(leave(holder) == ["both"] && isWaiting(next))
  }

  // MARK: Slots

  @Test mutating func membersOfOneGroupKeepTheirOrderUnderEachKey() {
    let holder = enter("holder", ["b": 4], weight: 2)
    let heavy = enter("heavy", ["b": 4], weight: 3, inGroup: true)
    let light = enter("light", ["a": 4, "b": 4], inGroup: true)
    #expect(isWaiting(heavy) && isWaiting(light), "the first under “a”, and not under “b”")
    #expect(leave(holder) == ["heavy", "light"])
  }

  /// A group is full once another member has taken the last slot, a queue once an operation has not been started in time.
  @Test(arguments: [true, false]) mutating func thoseBehindOneWhosePlaceIsFull_areCalledAtOnce(isGroup: Bool) {
    group.change(by: -1, in: &table)
    _ = enter("holder", ["b": 1])
    let both = enter("both", ["b": 1, "c": 1], at: queue(0), inGroup: isGroup)
    let next = enter("next", ["c": 1])
    #expect(isWaiting(both) && isWaiting(next))
    effects = []
    _ = enter("last", ["d": 1], at: queue(0), inGroup: isGroup)
    #expect(isGroup ? called.contains("next") : pass(20) == ["next"])
    #expect(isWaiting(both) && isHolding(next))
  }

  /// Their group answers later, and another group could hand out a later member meanwhile.
  @Test(arguments: 0...1, [false, true])
  mutating func membersBeyondTheFreeSlots_arePassedInTheStepThatFreesTheirKey(slots: Int, byTheGroup: Bool) {
    group.change(by: -slots, in: &table)
    let (limit, members) = (slots + 1, ["first", "second"].prefix(slots + 1))
    let holder = enter("holder", ["a": limit], weight: limit)
    for member in members { _ = enter(member, ["a": limit], inGroup: true) }
    let next = enter("next", ["a": limit])
    if byTheGroup {
      var changes: [KeyTable.Effect] = []
      group.givingSlots(in: &table) { $0.leave(holder, &changes) }
    } else {
      #expect(leave(holder) == members + ["next"])
    }
    #expect(isHolding(next))
  }

  /// It would pass one whose turn has been found, and is over when one before it has its turn.
  @Test mutating func whatIsBehindATurnThatAnotherGrantPrevents_hasItsTurn() {
    for number in 0...1 { _ = enter("full", ["other": 2], at: queue(number)) }
    _ = pass(20)
    let holder = enter("holder", ["a": 1, "b": 1])
    _ = enter("first", ["b": 1], at: queue(0))
    let both = enter("both", ["a": 1, "b": 1], at: queue(1))
    let next = enter("next", ["a": 1])
    #expect(leave(holder) == ["first", "next"] && isWaiting(both) && isHolding(next))
  }

  @Test mutating func aHolderThatIsStarted_keepsItsKeys() {
    let (holder, next) = (enter("holder", ["a": 1]), enter("next", ["a": 1]))
    table.prefer(next, &effects)
    #expect(start(holder) && isWaiting(next))
  }

  @Test mutating func aHolderIsReplacedOnce() {
    let holder = enter("holder", ["a": 1])
    for _ in 0..<2 {
      let claimant = TestClaimant("new")
      claimant.claims = [KeyClaim(domain: Self.domain, key: "a", limit: 1, policy: .replace)]
      table.enter(claimant, &effects)
      #expect(state(holder) == .replaced && table.uses[0].replacedCount == 1)
    }
  }

  // MARK: Weights

  @Test mutating func theLargestWeights_doNotOverflow() {
    let heaviest = enter("heaviest", ["memory": .max], weight: .max)
    let shared = enter("shared", ["memory": .max])
    let last = enter("last", ["memory": .max], weight: .max, at: queue(0))
    #expect(state(heaviest) == .holding && isWaiting(shared) && isWaiting(last))
    #expect(leave(heaviest) == ["shared"] && leave(shared) == ["last"] && leave(last).isEmpty)
  }

  @Test mutating func theLargestWeightBesideACalledClaimant_doesNotOverflow() {
    let heaviest = enter("heaviest", ["memory": .max], weight: .max, at: queue(0))
    _ = pass(20)
    let called = enter("called", ["memory": .max], weight: 3, at: queue(1))
    #expect(isCalled(called) && start(heaviest))
    #expect(isWaiting(enter("next", ["memory": 1])))
  }

  @Test mutating func manyThatLeaveFromTheMiddleLeaveNothingBehind() {
    let holder = enter("holder", ["a": 1])
    for _ in 0..<10 {
      let tickets = (0..<500).map { _ in enter("waits", ["a": 1]) }
      for ticket in tickets { #expect(leave(ticket).isEmpty) }
      #expect(table.uses[0].waiting.isEmpty)
    }
    #expect(leave(holder).isEmpty && table.isEmpty)
  }
}

extension KeyTable {
  /// Whether a member of a holder may pass those before it, which wait for the holder.
  mutating func mayPass(_ ticket: KeyTicket) -> Bool {
    let (others, isInHolder) = claimants(before: ticket)
    return isInHolder && !others.isEmpty
  }
}
