import Soak
import Testing

@testable import Operations

/// The table of keys as a value.
struct KeyTableTests {
  private typealias Table = KeyTable<String>

  private static let domain = ExclusivityDomain()
  private var table = Table()
  private var effects = Table.Effects()

  private final class Home: Sendable {}

  /// - Parameter home: Where it waits to be started. It is in hand without one.
  private mutating func join(
    _ name: String,
    _ keys: [ExclusivityKey: Int],
    inside outer: [Int] = [],
    home: Home? = nil
  ) -> Int {
    let demands = keys.sorted { $0.key.description < $1.key.description }.map { key, limit in
      Table.Demand(place: table.place(of: key, in: Self.domain, inside: outer), limit: limit)
    }
    let home = home.map { ObjectIdentifier($0) }
    return table.join(Table.Applicant(claimant: name, demands: demands, outer: outer, home: home), &effects)
  }

  private func state(_ ticket: Int) -> Table.State? { table.entries[ticket]?.state }

  /// - Returns: Those that go because of it.
  private mutating func leave(_ ticket: Int) -> [String] {
    effects = Table.Effects()
    table.leave(ticket, &effects)
    return effects.steps.map(\.claimant)
  }

  private mutating func tick(_ count: Int) -> [String] {
    effects = Table.Effects()
    for _ in 0..<count { table.tick(&effects) }
    return effects.steps.map(\.claimant)
  }

  // MARK: The rule

  @Test mutating func theFirstInAllOfItsLinesHoldsItsKeys() {
    let first = join("1", ["a": 1, "b": 1])
    let second = join("2", ["b": 1, "c": 1])
    let third = join("3", ["c": 1])
    #expect(state(first) == .holding && state(second) == .waiting && state(third) == .waiting)
    #expect(leave(first) == ["2"])
    #expect(leave(second) == ["3"])
    #expect(leave(third).isEmpty && table.isEmpty)
  }

  @Test mutating func theSmallestLimitAmongHoldersAndTheNewcomerCounts() {
    let shared = (0..<3).map { _ in join("s", ["a": .max]) }
    let limited = join("l", ["a": 4])
    #expect(state(limited) == .holding)
    let another = join("s", ["a": .max])
    #expect(state(another) == .waiting, "the one with the limit would be one of five")
    #expect(leave(shared[0]) == ["s"])
    let exclusive = join("e", ["a": 1])
    #expect(state(exclusive) == .waiting)
    for ticket in [shared[1], shared[2], limited] { #expect(leave(ticket).isEmpty) }
    #expect(leave(another) == ["e"])
  }

  @Test mutating func anExclusiveWaiterIsNotPassedByThoseThatShare() {
    let reader = join("reader", ["a": .max])
    let writer = join("writer", ["a": 1])
    let late = join("late reader", ["a": .max])
    #expect(state(writer) == .waiting && state(late) == .waiting)
    #expect(leave(reader) == ["writer"])
    #expect(leave(writer) == ["late reader"])
  }

  @Test mutating func manyThatShareGoTogether() {
    let writer = join("w", ["a": 1])
    for index in 0..<4 { _ = join("\(index)", ["a": .max]) }
    #expect(leave(writer) == ["0", "1", "2", "3"])
  }

  @Test mutating func anEntryThatLeavesFromTheMiddleLetsThoseBehindMoveUp() {
    _ = join("1", ["a": 1])
    let second = join("2", ["a": 1, "b": 1])
    _ = join("3", ["b": 1])
    #expect(leave(second) == ["3"])
  }

  // MARK: Members

  @Test mutating func whatRunsInsideAHolderUsesItsKey() {
    let group = join("group", ["a": 1])
    let outsider = join("outsider", ["a": 1])
    let member = join("member", ["a": 1], inside: [group])
    let sibling = join("sibling", ["a": 1], inside: [group])
    let deep = join("deep", ["a": 1], inside: [member, group])
    #expect(state(member) == .holding && state(sibling) == .waiting && state(deep) == .holding)
    #expect(leave(member) == ["sibling"])
    #expect(leave(group) == ["outsider"], "the key is free although members are left")
    for ticket in [outsider, sibling, deep] { #expect(leave(ticket).isEmpty) }
    #expect(table.isEmpty)
  }

  @Test mutating func aMemberGoesBeforeThoseThatWaitForItsGroup() {
    let group = join("group", ["a": 1])
    let outsider = join("outsider", ["a": 1, "b": 1])
    let member = join("member", ["b": 1], inside: [group])
    #expect(state(outsider) == .waiting && state(member) == .holding)
    #expect(leave(member).isEmpty)
    #expect(leave(group) == ["outsider"])
  }

  @Test mutating func butNotBeforeThoseThatDoNot() {
    let group = join("group", ["a": 1])
    let holder = join("holder", ["b": 1])
    let next = join("next", ["b": 1])
    let member = join("member", ["b": 1], inside: [group])
    #expect(leave(holder) == ["next"])
    #expect(leave(next) == ["member"])
    _ = member
  }

  @Test mutating func aMemberGoesBeforeThoseThatWaitForItsGroupThroughOthers() {
    let group = join("group", ["a": 1])
    let first = join("first", ["a": 1, "b": 1])
    let second = join("second", ["b": 1, "c": 1])
    let member = join("member", ["c": 1], inside: [group])
    #expect(state(first) == .waiting && state(second) == .waiting && state(member) == .waiting)
    let remedy = table.remedy()
    #expect(remedy.passing == [member] && remedy.refused == nil)
    effects = Table.Effects()
    table.apply(remedy, &effects)
    #expect(state(member) == .holding)
    let later = join("later", ["c": 1], inside: [group])
    #expect(leave(member) == ["later"], "it is known now")
    _ = later
  }

  @Test mutating func membersThatPassDoNotWaitForEachOther() {
    let groups = [join("A", ["a": 1]), join("B", ["b": 1])]
    let outsider = join("outsider", ["a": 1, "c": 1])
    let first = join("in A", ["b": 1, "c": 1], inside: [groups[0]])
    let second = join("in B", ["c": 1], inside: [groups[1]])
    #expect(state(first) == .waiting && state(second) == .waiting)
    let remedy = table.remedy()
    #expect(remedy.passing == [second] && remedy.refused == nil, "B holds what the member of A waits for")
    table.apply(remedy, &effects)
    #expect(leave(second).isEmpty && leave(groups[1]) == ["in A"])
    #expect(leave(first).isEmpty && leave(groups[0]) == ["outsider"])
    #expect(leave(outsider).isEmpty && table.isEmpty)
  }

  @Test mutating func afterADeadlockAnotherIsLookedFor() {
    let group = join("group", ["a": 1])
    _ = join("first", ["a": 1, "b": 1])
    _ = join("second", ["b": 1, "c": 1])
    _ = join("member", ["c": 1], inside: [group])
    table.willLookForDeadlock()
    table.apply(table.remedy(), &effects)
    #expect(table.mayBeStuck)
  }

  @Test mutating func groupsWhoseMembersWaitForEachOtherAreADeadlock() throws {
    let groups = [join("A", ["a": 1]), join("B", ["b": 1]), join("C", ["c": 1])]
    let members = [
      join("in A", ["b": 1], inside: [groups[0]]), join("in B", ["c": 1], inside: [groups[1]]),
      join("in C", ["d": 1, "a": 1], inside: [groups[2]]),
    ]
    let remedy = table.remedy()
    #expect(remedy.passing.isEmpty && remedy.refused == members[2])
    effects = Table.Effects()
    table.apply(remedy, &effects)
    let refusal = try #require(effects.refused.first)
    #expect(refusal.claimant == "in C" && refusal.holder == "A" && refusal.key == "a")
  }

  @Test mutating func aDeadlockOfOneHolderAmongSeveralIsNone() {
    let group = join("group", ["a": 2])
    let other = join("other", ["a": 2])
    let outer = join("outer", ["b": 1])
    _ = join("member", ["b": 1], inside: [group])
    let waiting = join("in outer", ["a": 2], inside: [outer])
    #expect(table.remedy().refused == nil, "the other holder finishes, and makes room")
    #expect(leave(other) == ["in outer"])
    _ = waiting
  }

  // MARK: Called operations

  @Test mutating func aCalledOperationIsWaitedForUntilItIsLate() {
    let (queue, other) = (Home(), Home())
    let called = join("called", ["a": 1], home: queue)
    let next = join("next", ["a": 1], home: queue)
    let stranger = join("stranger", ["a": 1], home: other)
    #expect(state(called) == .called && state(next) == .waiting && state(stranger) == .waiting)
    #expect(tick(1).isEmpty)
    #expect(tick(1) == ["stranger"], "the next one of its queue cannot come, either")
    #expect(table.arrive(stranger, waits: true, &effects))
    #expect(!table.arrive(called, waits: true, &effects), "it has come, and waits")
    #expect(leave(stranger) == ["called"])
    #expect(leave(called) == ["next"])
  }

  /// What waits behind a late operation in one line leaves the other lines to those behind it.
  @Test mutating func anOperationBehindALateOneIsPassedUnderItsOtherKeys() {
    let (queue, other) = (Home(), Home())
    let called = join("called", ["a": 1], home: queue)
    let next = join("next", ["a": 1, "b": 1], home: queue)
    let stranger = join("stranger", ["b": 1], home: other)
    #expect(state(called) == .called && state(next) == .waiting && state(stranger) == .waiting)
    #expect(tick(2) == ["stranger"])
  }

  @Test mutating func aLateOperationThatFindsItsKeyFreeHasIt() {
    let queue = Home()
    let called = join("called", ["a": 1, "b": 1], home: queue)
    let next = join("next", ["a": 1], home: queue)
    #expect(tick(2).isEmpty && state(called) == .late)
    #expect(table.arrive(called, waits: false, &effects))
    #expect(leave(called) == ["next"])
    #expect(leave(next).isEmpty && table.isEmpty)
  }

  @Test mutating func aLateOperationThatIsCancelledIsNotInTheWay() {
    let queue = Home()
    let called = join("called", ["a": 1], home: queue)
    _ = join("next", ["a": 1], home: queue)
    #expect(tick(2).isEmpty)
    #expect(leave(called) == ["next"])
  }

  // MARK: Nothing is left

  @Test mutating func manyThatLeaveFromTheMiddleLeaveNothingBehind() {
    let holder = join("holder", ["a": 1])
    for _ in 0..<10 {
      let tickets = (0..<500).map { _ in join("waits", ["a": 1]) }
      for ticket in tickets { #expect(leave(ticket).isEmpty) }
      #expect(table.lines[0]?.waiting.count ?? 0 < 128)
    }
    #expect(leave(holder).isEmpty && table.isEmpty)
  }

  @Test mutating func manyKeysThatHaveBeenUsedLeaveNothingBehind() {
    let tickets = (0..<20_000).map { join("", ["\($0)": 1]) }
    for ticket in tickets { _ = leave(ticket) }
    #expect(table.isEmpty && table.lines.isEmpty)
  }

  // MARK: Throttles

  @Test mutating func aThrottledOperationWaitsUntilTheStartHasLeftTheWindow() throws {
    let throttle = KeyThrottle(count: 2, interval: .seconds(1))
    func demand() -> [Table.Demand] {
      [Table.Demand(place: table.place(of: "a", in: Self.domain, inside: []), limit: .max, throttles: [throttle])]
    }
    var tickets: [Int] = []
    for name in ["1", "2", "3"] {
      tickets.append(table.join(Table.Applicant(claimant: name, demands: demand()), &effects))
    }
    #expect(tickets.map(state) == [.holding, .holding, .waiting])
    let delay = try #require(effects.delayed.first)
    #expect(delay.claimant == "3" && delay.start.serial == 0)
    #expect(leave(tickets[0]).isEmpty, "a start counts although the operation has finished")
    effects = Table.Effects()
    table.verify(delay, &effects)
    #expect(effects.steps.map(\.claimant) == ["3"])
  }
}
