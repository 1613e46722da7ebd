import Soak
import Testing

@testable import Operations

/// The table of keys as a value.
struct KeyTableTests {
  private typealias Table = KeyTable<String>

  private static let domain = ExclusivityDomain()
  private var table = Table()
  private var effects: [Table.Effect] = []

  /// - Parameter isStarted: Whether it holds its keys when it is called.
  private mutating func enter(
    _ name: String,
    _ keys: [ExclusivityKey: Int],
    weight: Int = 1,
    inside enclosing: [KeyTicket] = [],
    from origin: ExclusivityDomain? = nil,
    isStarted: Bool = true
  ) -> KeyTicket {
    let claims = keys.sorted { $0.key.description < $1.key.description }.map { key, limit in
      KeyClaim(domain: Self.domain, key: key, limit: limit, weight: weight)
    }
    let id = origin.map { ObjectIdentifier($0) }
    guard let ticket = table.enter(name, claims, inside: enclosing, from: id, isStarted: isStarted, &effects) else {
      Issue.record("\(name) was dropped")
      return KeyTicket(number: -1, place: -1)
    }
    return ticket
  }

  private func state(_ ticket: KeyTicket) -> KeyState? { table.state(of: ticket) }

  private func isWaiting(_ ticket: KeyTicket) -> Bool { state(ticket) == .waiting }

  private func isCalled(_ ticket: KeyTicket) -> Bool { state(ticket)?.isCalled == true }

  /// The claimants that have been called.
  private var called: [String] {
    effects.compactMap { if case .call(let name, _) = $0 { name } else { nil } }
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

  private mutating func start(_ ticket: KeyTicket, waits: Bool = false) -> Bool {
    effects = []
    return table.start(ticket, waits: waits, &effects)
  }

  /// - Returns: The claimant that is refused because of a deadlock.
  private mutating func deadlock() -> KeyTicket? {
    table.now += 1_000
    return table.beginDeadlockSearch()?.victim()
  }

  /// Otherwise n operations of a suspended queue, or members of a full group, would delay the others n times.
  @Test mutating func timeIsLeftOnlyToTheFirstOfOneQueue() {
    let (stopped, idle) = (ExclusivityDomain(), ExclusivityDomain())
    let waiters = (0..<100).map { enter("\($0)", ["a": 1], from: stopped, isStarted: false) }
    let others = (0..<2).map { enter("other \($0)", ["a": 1], from: idle, isStarted: false) }
    #expect(isCalled(waiters[0]) && isWaiting(waiters[1]) && isWaiting(others[0]))
    let (early, late) = (pass(19), pass(1))
    #expect(early.isEmpty && late.count == 100 && late.last == "other 0" && isWaiting(others[1]))
    let hasStarted = [start(others[0]), start(waiters[3])]
    #expect(hasStarted == [true, false] && isWaiting(waiters[3]))
    for ticket in others + waiters { table.leave(ticket, &effects) }
    #expect(table.entries.isEmpty && table.useIndices.isEmpty)
  }

  // MARK: The rule

  @Test mutating func theFirstInAllOfItsQueuesHoldsItsKeys() {
    let first = enter("1", ["a": 1, "b": 1])
    let second = enter("2", ["b": 1, "c": 1])
    let third = enter("3", ["c": 1])
    #expect(state(first) == .holding && isWaiting(second) && isWaiting(third))
    #expect(leave(first) == ["2"])
    #expect(leave(second) == ["3"])
    #expect(leave(third).isEmpty && table.isEmpty)
  }

  // MARK: Members

  @Test mutating func aMemberGoesBeforeThoseThatWaitForItsGroup() {
    let group = enter("group", ["a": 1])
    let outsider = enter("outsider", ["a": 1, "b": 1])
    let member = enter("member", ["b": 1], inside: [group])
    #expect(isWaiting(outsider) && state(member) == .holding)
    #expect(leave(member).isEmpty)
    #expect(leave(group) == ["outsider"])
  }

  @Test mutating func aMemberGoesBehindThoseThatDoNotWaitForItsGroup() {
    let group = enter("group", ["a": 1])
    let holder = enter("holder", ["b": 1])
    let next = enter("next", ["b": 1])
    _ = enter("member", ["b": 1], inside: [group])
    #expect(leave(holder) == ["next"])
    #expect(leave(next) == ["member"])
  }

  @Test mutating func membersOfSeveralHoldersDoNotWaitInOneLine() {
    let groups = [enter("A", ["a": 1]), enter("B", ["b": 1])]
    let outsider = enter("outsider", ["a": 1, "c": 1])
    let first = enter("in A", ["b": 1, "c": 1], inside: [groups[0]])
    let second = enter("in B", ["c": 1], inside: [groups[1]])
    #expect(isWaiting(outsider) && isWaiting(first) && state(second) == .holding)
    #expect(deadlock() == nil)
    #expect(leave(second).isEmpty && leave(groups[1]) == ["in A"])
    #expect(leave(first).isEmpty && leave(groups[0]) == ["outsider"])
    #expect(leave(outsider).isEmpty && table.isEmpty)
  }

  @Test mutating func membersOfOneHolderWaitInOneLine() {
    let group = enter("group", ["a": 1])
    let holder = enter("holder", ["b": 1])
    let members = (0..<3).map { enter("\($0)", ["b": 1], inside: [group]) }
    #expect(members.allSatisfy { isWaiting($0) })
    #expect(leave(holder) == ["0"] && leave(members[0]) == ["1"] && leave(members[1]) == ["2"])
  }

  @Test mutating func afterADeadlockAnotherIsLookedFor() throws {
    let groups = [enter("A", ["a": 1]), enter("B", ["b": 1])]
    _ = enter("in A", ["b": 1], inside: [groups[0]])
    let last = enter("in B", ["a": 1], inside: [groups[1]])
    let victim = try #require(deadlock())
    #expect(victim == last)
    table.refuse(victim, &effects)
    guard case .cancel("in B", .deadlock("a", holder: "A"))? = effects.last else {
      Issue.record("\(effects)")
      return
    }
    #expect(deadlock() == last)
    #expect(leave(last).isEmpty && deadlock() == nil)
  }

  @Test mutating func aDeadlockOfOneHolderAmongSeveralIsNone() {
    let group = enter("group", ["a": 2])
    let other = enter("other", ["a": 2])
    let enclosing = enter("enclosing", ["b": 1])
    _ = enter("member", ["b": 1], inside: [group])
    _ = enter("in enclosing", ["a": 2], inside: [enclosing])
    #expect(deadlock() == nil, "the other holder finishes, and makes room")
    #expect(leave(other) == ["in enclosing"])
  }

  // MARK: Called claimants

  @Test mutating func aCalledClaimantIsWaitedForFor20Milliseconds() {
    let called = enter("called", ["a": 1], isStarted: false)
    let next = enter("next", ["a": 1], isStarted: false)
    #expect(isCalled(called) && isWaiting(next))
    #expect(pass(19).isEmpty)
    #expect(pass(1) == ["next"])
    #expect(start(next), "it holds nothing before its start")
    #expect(!start(called) && isWaiting(called))
    #expect(leave(next) == ["called"])
    #expect(start(called) && leave(called).isEmpty && table.isEmpty)
  }

  @Test mutating func aClaimantThatWasPassed_takesItsFreeKeys() {
    let called = enter("called", ["a": 1, "b": 1], isStarted: false)
    let next = enter("next", ["a": 1], isStarted: false)
    #expect(pass(20) == ["next"])
    #expect(start(called), "the one that is started first takes the keys")
    #expect(!start(next, waits: true) && isWaiting(next))
    #expect(leave(called) == ["next"] && state(next) == .holding)
  }

  @Test mutating func aRefusedClaimantIsFirstInLineAgain() {
    let called = enter("called", ["a": 1], isStarted: false)
    let others = (0..<3).map { enter("\($0)", ["a": 1], isStarted: false) }
    #expect(pass(20) == ["0"] && start(others[0]) && !start(called))
    #expect(leave(others[0]) == ["called"])
  }

  /// Others may pass a claimant that is called, under its other keys.
  @Test mutating func aClaimantThatWasPassed_keepsNoOtherWaiting() {
    let called = enter("called", ["a": 1, "b": 1], isStarted: false)
    let stranger = enter("stranger", ["b": 1], isStarted: false)
    #expect(isCalled(called) && isWaiting(stranger))
    #expect(pass(20) == ["stranger"])
  }

  @Test mutating func severalAreCalled_ifTheirKeyAdmitsThem() {
    let tickets = (0..<4).map { enter("\($0)", ["a": 3], isStarted: false) }
    #expect(tickets.map { isCalled($0) } == [true, true, true, false])
    #expect(start(tickets[1]) && called.isEmpty)
    #expect(leave(tickets[0]) == ["3"], "one that leaves was not started")
  }

  /// So a member of a group that is always busy starts after a bounded number of refusals.
  @Test mutating func aRefusedClaimantIsWaitedForTwiceAsLong() {
    let called = enter("called", ["a": 1], isStarted: false)
    var patience = 20
    for _ in 0..<12 {
      let next = enter("next", ["a": 1], isStarted: false)
      #expect(pass(patience - 1).isEmpty)
      #expect(pass(1) == ["next"])
      #expect(start(next) && !start(called))
      #expect(leave(next) == ["called"])
      patience = min(patience * 2, 20 << 9)
    }
  }

  // MARK: Weights

  @Test mutating func aKeyAdmitsHoldersUpToItsLimit_byWeight() {
    let heavy = enter("heavy", ["memory": 8], weight: 5)
    let medium = enter("medium", ["memory": 8], weight: 4)
    let light = enter("light", ["memory": 8], weight: 3)
    #expect(state(heavy) == .holding && isWaiting(medium) && isWaiting(light), "the heavy one is not passed")
    #expect(leave(heavy) == ["medium", "light"])
  }

  @Test mutating func theLargestWeights_doNotOverflow() {
    let heaviest = enter("heaviest", ["memory": .max], weight: .max)
    let shared = enter("shared", ["memory": .max])
    let last = enter("last", ["memory": .max], weight: .max, isStarted: false)
    #expect(state(heaviest) == .holding && isWaiting(shared) && isWaiting(last))
    #expect(leave(heaviest) == ["shared"] && leave(shared) == ["last"] && leave(last).isEmpty)
  }

  @Test mutating func theLargestWeightBesideACalledClaimant_doesNotOverflow() {
    let heaviest = enter("heaviest", ["memory": .max], weight: .max, isStarted: false)
    _ = pass(20)
    let called = enter("called", ["memory": .max], weight: 3, isStarted: false)
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
    let ticket = try #require(table.enter(name, [claim], isStarted: false, &effects))
    let cancelled = effects.compactMap { effect in
      if case .cancel(let other, .replaced(by: name)) = effect { other } else { nil }
    }
    return (ticket, cancelled)
  }

  @Test mutating func replacedWaitersLeaveAtOnceAndAHolderIsReplacedOnce() throws {
    let first = enter("called", ["a": 1], isStarted: false)
    let waiter = enter("waiter", ["a": 1, "b": 1])
    let stranger = enter("stranger", ["b": 1])
    #expect(isCalled(first) && isWaiting(waiter) && isWaiting(stranger))
    let holder = try replace("holder")
    #expect(holder.cancelled == ["waiter", "called"] && called == ["stranger"])
    #expect(state(first) == nil && state(waiter) == nil && isCalled(holder.ticket))
    #expect(!start(waiter, waits: true), "the thread that cancels it may be late")
    #expect(start(holder.ticket))
    let second = try replace("second")
    #expect(second.cancelled == ["holder"] && state(holder.ticket)?.isReplaced == true && isWaiting(second.ticket))
    let third = try replace("third")
    #expect(third.cancelled == ["second"] && state(second.ticket) == nil)
    #expect(leave(holder.ticket) == ["third"])
    #expect(leave(third.ticket).isEmpty && leave(stranger).isEmpty && table.isEmpty)
  }

  // MARK: Throttles

  /// The use of the cancelled waiter is gone when the call of the next one ends.
  @Test mutating func aCallThatEnds_servesWaitersOfTheSameWindow() throws {
    let throttled = KeyClaim(
      domain: Self.domain,
      key: "api",
      throttles: [KeyThrottle(count: 1, interval: .seconds(1))]
    )
    let others = (0..<5).map { enter("other", ["\($0)": 1]) }
    let first = try #require(table.enter("first", [throttled], isStarted: true, &effects))
    let cancelled = try #require(table.enter("cancelled", [throttled], isStarted: true, &effects))
    #expect(state(first) == .holding && isWaiting(cancelled))
    for ticket in [cancelled, first] + others { #expect(leave(ticket).isEmpty) }
    let next = try #require(table.enter("next", [throttled], isStarted: false, &effects))
    guard case .wait(_, let delay)? = effects.last else {
      Issue.record("the window is full")
      return
    }
    #expect(isWaiting(next))
    table.endDelay(delay, &effects)
    #expect(isCalled(next))
    let last = try #require(table.enter("last", [throttled], isStarted: true, &effects))
    #expect(isWaiting(last))
    #expect(leave(next).isEmpty)
    guard case .wait("last", let rest)? = effects.last else {
      Issue.record("a call that is not answered is no start")
      return
    }
    table.endDelay(rest, &effects)
    #expect(state(last) == .holding)
    #expect(leave(last).isEmpty && table.isEmpty)
  }

  /// Otherwise the end of the call would count as a start less than none.
  @Test mutating func aLogWithACallIsKept() throws {
    let throttles = [KeyThrottle(count: 2, interval: .seconds(1))]
    let throttled = KeyClaim(domain: Self.domain, key: "api", throttles: throttles)
    let group = try #require(table.enter("group", [throttled], isStarted: true, &effects))
    let member = try #require(table.enter("member", [throttled], inside: [group], isStarted: false, &effects))
    #expect(state(group) == .holding && isCalled(member) && leave(group).isEmpty)
    let lastStarts = table.logs.map { ($0.key, $0.value.starts.last) }
    let early = table.forget(lastStarts)
    #expect(lastStarts.count == 1 && early.isEmpty)
    #expect(leave(member).isEmpty)
    let late = table.forget(lastStarts)
    #expect(late.count == 1 && table.isEmpty)
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

  @Test mutating func manyKeysThatHaveBeenUsedLeaveNothingBehind() {
    let tickets = (0..<20_000).map { enter("", ["\($0)": 1]) }
    for ticket in tickets { _ = leave(ticket) }
    #expect(table.isEmpty)
  }
}
