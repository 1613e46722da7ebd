import Testing

@testable import Operations

/// The table of keys as a value, where no operation shows what it decides.
struct KeyTableTests {
  private static let domain = ExclusivityDomain()
  private var table = KeyTable()
  private var effects: [KeyTable.Effect] = []

  private static let homes = (0..<4).map { _ in ExclusivityDomain() }

  private func queue(_ number: Int) -> KeyPlace { .queue(ObjectIdentifier(Self.homes[number])) }

  private mutating func enter(
    _ name: String,
    _ keys: [ExclusivityKey: Int],
    weight: Int = 1,
    inside enclosing: [KeyTicket] = [],
    at place: KeyPlace = .none,
    slots: TestClaimant.Slots? = nil
  ) -> KeyTicket {
    let claims = keys.sorted { $0.key.description < $1.key.description }.map { key, limit in
      KeyClaim(domain: Self.domain, key: key, limit: limit, weight: weight)
    }
    let (claimant, place) = (TestClaimant(name, slots), slots.map { .group(ObjectIdentifier($0)) } ?? place)
    claimant.claims = claims
    table.enter(claimant, inside: enclosing, at: place, &effects)
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
    effects.compactMap { if case .call(let claimant, _, _) = $0 { claimant.name } else { nil } }
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
    table.comeBack(ticket, at: .none, &effects)
    return isHolding(ticket)
  }

  private mutating func deadlocks() -> [DeadlockSearch.Finding] {
    table.now += 1_000
    return table.beginDeadlockSearch()?.findings() ?? []
  }

  // MARK: Members

  @Test mutating func aMemberThatCannotPassYet_hidesNoOtherDeadlock() {
    let slots = TestClaimant.Slots(0)
    let called = enter("called", ["c": 1], slots: slots)
    let members = [(["a", "b", "c"], slots), (["d", "e", "f"], nil)].map { (keys: [ExclusivityKey], slots) in
      let (inner, outer) = (enter("inner", [keys[0]: 1]), enter("outer", [keys[1]: 1]))
      _ = enter("in inner", [keys[1]: 1], inside: [inner])
      _ = enter("outsider", [keys[0]: 1, keys[2]: 1])
      return enter("member", [keys[2]: 1], inside: [outer], slots: slots)
    }
    #expect(isCalled(called) && deadlocks() == members.map { .pass($0) })
    for member in members { table.resolve(.pass(member), &effects) }
    #expect(isWaiting(members[0]) && isHolding(members[1]))
  }

  @Test mutating func aMemberPassesThoseThatWaitForItsHolder() {
    let group = enter("group", ["a": 1])
    let outsider = enter("outsider", ["a": 1, "b": 1])
    let member = enter("member", ["b": 1], inside: [group])
    #expect(isWaiting(outsider) && isHolding(member))
  }

  @Test mutating func aDeadlockOfOneHolderAmongSeveralIsNone() {
    let group = enter("group", ["a": 2])
    let other = enter("other", ["a": 2])
    let enclosing = enter("enclosing", ["b": 1])
    _ = enter("member", ["b": 1], inside: [group])
    _ = enter("in enclosing", ["a": 2], inside: [enclosing])
    #expect(deadlocks().isEmpty, "the other holder finishes, and makes room")
    #expect(leave(other) == ["in enclosing"])
  }

  /// A holder that is replaced is about to cancel its members, and one may leave while the search goes on.
  @Test mutating func aDeadlockThatEndsByItself_refusesNone() {
    let holders = [enter("a", ["a": 1, "c": 1]), enter("b", ["b": 1])]
    let members = [enter("in a", ["b": 1], inside: [holders[0]]), enter("in b", ["a": 1], inside: [holders[1]])]
    let new = TestClaimant("new")
    new.claims = [KeyClaim(domain: Self.domain, key: "c", limit: 1, policy: .replace)]
    table.now = 19
    table.enter(new, &effects)
    table.now = 20
    #expect(table.beginDeadlockSearch()?.findings() == [])
    let findings = deadlocks()
    #expect(findings == [.refuse(members[1])] && leave(holders[0]) == ["in b", "new"])
    effects = []
    for finding in findings { table.resolve(finding, &effects) }
    #expect(effects.isEmpty && isHolding(members[1]))
  }

  @Test mutating func aMemberThatLendsItsKeys_returnsItsSlot() {
    let slots = TestClaimant.Slots(1)
    let group = enter("group", ["a": 1], slots: slots)
    let member = enter("member", ["a": 1], inside: [group])
    table.leave(group, lends: true, &effects)
    #expect(state(group) == .lending && slots.count == 1)
    #expect(leave(member).isEmpty && slots.count == 1 && table.isEmpty)
  }

  /// The group also holds the key of the same name in another domain, exclusively.
  @Test mutating func aStrongerClaim_waitsForTheHoldersInItsDomain() {
    let group = TestClaimant("group")
    group.claims = [(Self.homes[0], 1), (Self.domain, 2)].map { KeyClaim(domain: $0, key: "a", limit: $1) }
    table.enter(group, &effects)
    let other = enter("other", ["a": 2])
    let member = enter("member", ["a": 1], inside: group.ticket.map { [$0] } ?? [])
    #expect(isHolding(other) && isWaiting(member))
    #expect(leave(other) == ["member"])
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
    let (slots, holder) = (TestClaimant.Slots(0), enter("holder", ["b": 4], weight: 2))
    let heavy = enter("heavy", ["b": 4], weight: 3, slots: slots)
    let light = enter("light", ["a": 4, "b": 4], slots: slots)
    #expect(isWaiting(heavy) && isWaiting(light), "the first under “a”, and not under “b”")
    #expect(leave(holder) == ["heavy", "light"])
  }

  /// A group is full once another member has taken the last slot, a queue once an operation has not been started in time.
  @Test(arguments: [true, false]) mutating func thoseBehindOneWhosePlaceIsFull_areCalledAtOnce(isGroup: Bool) {
    let (slots, home) = (isGroup ? TestClaimant.Slots(1) : nil, isGroup ? KeyPlace.none : queue(0))
    _ = enter("holder", ["b": 1])
    let both = enter("both", ["b": 1, "c": 1], at: home, slots: slots)
    let next = enter("next", ["c": 1])
    #expect(isWaiting(both) && isWaiting(next))
    effects = []
    _ = enter("last", ["d": 1], at: home, slots: slots)
    #expect(isGroup ? called.contains("next") : pass(20) == ["next"])
    #expect(isWaiting(both) && isHolding(next))
  }

  @Test mutating func aHolderIsReplacedOnce() {
    let holder = enter("holder", ["a": 1])
    for _ in 0..<2 {
      let claimant = TestClaimant("new")
      claimant.claims = [KeyClaim(domain: Self.domain, key: "a", limit: 1, policy: .replace)]
      table.enter(claimant, &effects)
      #expect(state(holder)?.isReplaced == true && table.uses[0].replacedCount == 1)
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
