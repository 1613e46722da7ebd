import Testing

@testable import Operations

/// The table of keys as a value.
struct KeyTableTests {
  private typealias Table = KeyTable<TestClaimant>

  private static let domain = ExclusivityDomain()
  private var table = Table()
  private var effects: [Table.Effect] = []

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
    let ticket = table.enter(claimant, claims, inside: enclosing, at: place, &effects)
    guard let ticket else {
      Issue.record("\(name) was dropped")
      return KeyTicket(number: -1, place: -1)
    }
    return ticket
  }

  private func state(_ ticket: KeyTicket) -> KeyState? { table.state(of: ticket) }

  private func isWaiting(_ ticket: KeyTicket) -> Bool { state(ticket) == .waiting }

  private func isCalled(_ ticket: KeyTicket) -> Bool { state(ticket)?.isCalled == true }

  private func isHolding(_ ticket: KeyTicket) -> Bool { state(ticket) == .holding }

  /// The claimants that have been called.
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
    table.start(ticket, &effects)
    return isHolding(ticket)
  }

  private mutating func deadlocks() -> [DeadlockSearch.Finding] {
    table.now += 1_000
    return table.beginDeadlockSearch()?.findings() ?? []
  }

  // MARK: Members

  @Test mutating func aMemberGoesBehindThoseThatDoNotWaitForItsGroup() {
    let group = enter("group", ["a": 1])
    let holder = enter("holder", ["b": 1])
    let next = enter("next", ["b": 1])
    _ = enter("member", ["b": 1], inside: [group])
    #expect(leave(holder) == ["next"])
    #expect(leave(next) == ["member"])
  }

  /// “in A” waits for B, so “in B” must pass it, although it came later.
  @Test mutating func aMemberPassesThoseThatWaitForItsHolder() {
    let groups = [enter("A", ["a": 1]), enter("B", ["b": 1])]
    let outsider = enter("outsider", ["a": 1, "c": 1])
    let first = enter("in A", ["b": 1, "c": 1], inside: [groups[0]])
    let second = enter("in B", ["c": 1], inside: [groups[1]])
    #expect(isWaiting(outsider) && isWaiting(first))
    for finding in deadlocks() { table.resolve(finding, &effects) }
    #expect(isHolding(second))
    #expect(leave(second).isEmpty && leave(groups[1]) == ["in A"])
    #expect(leave(first).isEmpty && leave(groups[0]) == ["outsider"])
    #expect(leave(outsider).isEmpty && table.isEmpty)
  }

  /// A member passes those that wait for its holder through others when a search has found them.
  @Test mutating func aMemberPassesThoseThatWaitForItsHolderIndirectly() {
    let (inner, outer) = (enter("inner", ["a": 1]), enter("outer", ["b": 1]))
    let link = enter("in inner", ["b": 1], inside: [inner])
    let outsider = enter("outsider", ["a": 1, "c": 1])
    let member = enter("in outer", ["c": 1], inside: [outer])
    #expect(isWaiting(link) && isWaiting(outsider) && isWaiting(member))
    #expect(deadlocks() == [.pass(member)])
    table.resolve(.pass(member), &effects)
    #expect(isHolding(member))
    #expect(leave(member).isEmpty && leave(outer) == ["in inner"] && leave(link).isEmpty)
    #expect(leave(inner) == ["outsider"] && leave(outsider).isEmpty && table.isEmpty)
  }

  /// Otherwise readers in groups would pass an exclusive claimant as long as new ones come.
  @Test(arguments: [1, Int.max]) mutating func membersDoNotPassThoseThatDoNotWaitForTheirHolder(limit: Int) {
    let groups = (0..<3).map { enter("group \($0)", ["a": .max]) }
    let first = enter("first", ["b": .max], inside: [groups[0]])
    let writer = limit == 1 ? enter("writer", ["b": 1]) : enter("writer", ["b": 4], weight: 4)
    let readers = (1..<3).map { enter("reader \($0)", ["b": .max], inside: [groups[$0]]) }
    #expect(isHolding(first) && isWaiting(writer) && readers.allSatisfy { isWaiting($0) })
    #expect(leave(first) == ["writer"] && leave(writer) == ["reader 1", "reader 2"])
  }

  @Test mutating func membersOfOneHolderWaitInOneLine() {
    let group = enter("group", ["a": 1])
    let holder = enter("holder", ["b": 1])
    let members = (0..<3).map { enter("\($0)", ["b": 1], inside: [group]) }
    #expect(members.allSatisfy { isWaiting($0) })
    #expect(leave(holder) == ["0"] && leave(members[0]) == ["1"] && leave(members[1]) == ["2"])
  }

  @Test mutating func afterADeadlockAnotherIsLookedFor() {
    let groups = [enter("A", ["a": 1]), enter("B", ["b": 1])]
    _ = enter("in A", ["b": 1], inside: [groups[0]])
    let last = enter("in B", ["a": 1], inside: [groups[1]])
    #expect(deadlocks() == [.refuse(last)])
    table.resolve(.refuse(last), &effects)
    guard case .cancel("in B", .deadlock("a", holder: "A"))? = effects.last else {
      Issue.record("\(effects)")
      return
    }
    #expect(deadlocks() == [.refuse(last)])
    #expect(leave(last).isEmpty && deadlocks().isEmpty)
  }

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

  @Test mutating func aDeadlockOfOneHolderAmongSeveralIsNone() {
    let group = enter("group", ["a": 2])
    let other = enter("other", ["a": 2])
    let enclosing = enter("enclosing", ["b": 1])
    _ = enter("member", ["b": 1], inside: [group])
    _ = enter("in enclosing", ["a": 2], inside: [enclosing])
    #expect(deadlocks().isEmpty, "the other holder finishes, and makes room")
    #expect(leave(other) == ["in enclosing"])
  }

  // MARK: Stronger claims

  @Test mutating func aLargerWeightInsideASmaller_takesTheDifference() {
    let outer = enter("outer", ["a": 4], weight: 1)
    let other = enter("other", ["a": 4], weight: 2)
    let heavy = enter("heavy", ["a": 4], weight: 3, inside: [outer])
    #expect(isWaiting(heavy) && leave(other) == ["heavy"])
    let next = enter("next", ["a": 4], weight: 2)
    #expect(isWaiting(next) && leave(heavy) == ["next"])
  }

  // MARK: Slots

  @Test mutating func membersOfFullGroupsArePassed() {
    let (full, free) = (TestClaimant.Slots(0), TestClaimant.Slots(2))
    let members = (0..<3).map { enter("full \($0)", ["a": 1], slots: full) }
    let other = enter("other", ["a": 1], slots: free)
    #expect(isCalled(members[0]) && isWaiting(members[1]) && isHolding(other))
    // Its group has taken the slot for it.
    table.callAgain(members[0], &effects)
    #expect(isWaiting(members[0]) && full.count == 1, "its keys are taken, and it keeps its place")
    let last = enter("last", ["a": 1], slots: free)
    #expect(leave(other) == ["full 0"] && isHolding(members[0]) && full.count == 0)
    #expect(leave(members[0]) == ["full 1"] && isWaiting(last))
  }

  /// One that waits for another key is passed under its free key if its group is full.
  @Test(arguments: [0, 1]) mutating func aMemberThatNeedsTwoKeys_isPassedOnlyIfItsGroupIsFull(free: Int) {
    let holder = enter("holder", ["b": 1])
    let (slots, others) = (TestClaimant.Slots(free), TestClaimant.Slots(1))
    let both = enter("both", ["a": 1, "b": 1], slots: slots)
    let next = enter("next", ["a": 1], slots: others)
    #expect(isWaiting(both) && isHolding(next) == (free == 0))
    _ = leave(holder)
  }

  /// Its group or queue is full once another one has taken the last slot, or has not been started in time.
  @Test(arguments: [true, false]) mutating func thoseBehindOneWhosePlaceIsFull_areCalledAtOnce(isGroup: Bool) {
    let (slots, home) = (isGroup ? TestClaimant.Slots(1) : nil, isGroup ? KeyPlace.none : queue(0))
    let holder = enter("holder", ["b": 1])
    let both = enter("both", ["b": 1, "c": 1], at: home, slots: slots)
    let next = enter("next", ["c": 1])
    #expect(isWaiting(both) && isWaiting(next))
    effects = []
    let last = enter("last", ["d": 1], at: home, slots: slots)
    #expect(isGroup ? isHolding(last) && called == ["next"] : pass(20) == ["next"])
    #expect(isHolding(holder) && isHolding(next))
  }

  // MARK: Priorities

  @Test mutating func aLentPriorityReachesTheNextHolder() {
    let called = enter("called", ["a": 1], at: queue(0))
    let urgent = enter("urgent", ["a": 1])
    table.setPriority(4, lent: .high, of: urgent, &effects)
    #expect(start(called) && isWaiting(urgent))
    guard case .lend(.high, "called")? = effects.last else {
      Issue.record("\(effects)")
      return
    }
  }

  // MARK: Loans

  @Test mutating func aMemberThatLendsItsKeys_returnsItsSlot() {
    let slots = TestClaimant.Slots(1)
    let group = enter("group", ["a": 1], slots: slots)
    let member = enter("member", ["a": 1], inside: [group])
    table.leave(group, lends: true, &effects)
    #expect(state(group) == .lending && slots.count == 1)
    #expect(leave(member).isEmpty && slots.count == 1 && table.isEmpty)
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

  /// Otherwise the operations of a queue fill its slots while they wait for a key.
  @Test mutating func asManyOfAQueueAreCalledAsTheKeyAdmits() {
    let tickets = (0..<4).map { enter("\($0)", ["a": 3], at: queue(0)) }
    #expect(tickets.map { isCalled($0) } == [true, true, true, false])
    #expect(pass(20).isEmpty)
    #expect(start(tickets[1]) && called.isEmpty)
    #expect(leave(tickets[0]) == ["3"], "one that leaves was not started")
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

  // MARK: Replacing

  /// Replaces everything under the key “a”.
  ///
  /// - Returns: The new entry, and the claimants to cancel.
  private mutating func replace(_ name: String) throws -> (ticket: KeyTicket, cancelled: [String]) {
    effects = []
    let claim = KeyClaim(domain: Self.domain, key: "a", limit: 1, policy: .replace)
    let ticket = try #require(table.enter(TestClaimant(name), [claim], at: queue(0), &effects))
    let cancelled = effects.compactMap { effect in
      if case .cancel(let other, .replaced(let newer)) = effect, newer.name == name { other.name } else { nil }
    }
    return (ticket, cancelled)
  }

  @Test mutating func replacedWaitersLeaveAtOnceAndAHolderIsReplacedOnce() throws {
    let first = enter("called", ["a": 1], at: queue(1))
    let waiter = enter("waiter", ["a": 1, "b": 1])
    let stranger = enter("stranger", ["b": 1])
    #expect(isCalled(first) && isWaiting(waiter) && isWaiting(stranger))
    let holder = try replace("holder")
    #expect(holder.cancelled == ["waiter", "called"] && called == ["stranger"])
    #expect(state(first) == nil && state(waiter) == nil && isCalled(holder.ticket))
    #expect(!start(waiter), "the thread that cancels it may be late")
    #expect(start(holder.ticket))
    let second = try replace("second")
    #expect(second.cancelled == ["holder"] && state(holder.ticket)?.isReplaced == true && isWaiting(second.ticket))
    let third = try replace("third")
    #expect(third.cancelled == ["second"] && state(second.ticket) == nil)
    #expect(leave(holder.ticket) == ["third"])
    #expect(leave(third.ticket).isEmpty && leave(stranger).isEmpty && table.isEmpty)
  }

  // MARK: Nothing is left

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
