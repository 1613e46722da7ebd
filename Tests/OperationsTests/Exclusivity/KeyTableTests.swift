import Soak
import Testing

@testable import Operations

/// The table of keys as a value.
struct KeyTableTests {
  private typealias Table = KeyTable<String>

  private static let domain = ExclusivityDomain()
  private var table = Table()
  private var effects = Table.Effects()

  private final class Host: Sendable {}

  /// - Parameter host: Where it waits to be started. It is in hand without one.
  private mutating func enter(
    _ name: String,
    _ keys: [ExclusivityKey: Int],
    inside enclosing: [Int] = [],
    host: Host? = nil
  ) -> Int {
    let demands = keys.sorted { $0.key.description < $1.key.description }.map { key, limit in
      Table.Demand(queue: table.queueID(of: key, in: Self.domain, inside: enclosing), limit: limit)
    }
    let host = host.map { ObjectIdentifier($0) }
    return table.enter(Table.Applicant(claimant: name, demands: demands, enclosing: enclosing, host: host), &effects)
  }

  private func state(_ ticket: Int) -> Table.State? { table.entries[ticket]?.state }

  /// - Returns: The claimants that proceed because of it.
  private mutating func leave(_ ticket: Int) -> [String] {
    effects = Table.Effects()
    table.leave(ticket, &effects)
    return effects.grants.map(\.claimant)
  }

  private mutating func tick(_ count: Int) -> [String] {
    effects = Table.Effects()
    for _ in 0..<count { table.tick(&effects) }
    return effects.grants.map(\.claimant)
  }

  // MARK: The rule

  @Test mutating func theFirstInAllOfItsQueuesHoldsItsKeys() {
    let first = enter("1", ["a": 1, "b": 1])
    let second = enter("2", ["b": 1, "c": 1])
    let third = enter("3", ["c": 1])
    #expect(state(first) == .holding && state(second) == .waiting && state(third) == .waiting)
    #expect(leave(first) == ["2"])
    #expect(leave(second) == ["3"])
    #expect(leave(third).isEmpty && table.isEmpty)
  }

  // MARK: Members

  @Test mutating func aMemberGoesBeforeThoseThatWaitForItsGroup() {
    let group = enter("group", ["a": 1])
    let outsider = enter("outsider", ["a": 1, "b": 1])
    let member = enter("member", ["b": 1], inside: [group])
    #expect(state(outsider) == .waiting && state(member) == .holding)
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

  @Test mutating func preferredMembersDoNotWaitForEachOther() {
    let groups = [enter("A", ["a": 1]), enter("B", ["b": 1])]
    let outsider = enter("outsider", ["a": 1, "c": 1])
    let first = enter("in A", ["b": 1, "c": 1], inside: [groups[0]])
    let second = enter("in B", ["c": 1], inside: [groups[1]])
    #expect(state(first) == .waiting && state(second) == .waiting)
    let remedy = table.remedy()
    #expect(remedy.preferred == [second] && remedy.refused == nil, "B holds what the member of A waits for")
    table.apply(remedy, &effects)
    #expect(leave(second).isEmpty && leave(groups[1]) == ["in A"])
    #expect(leave(first).isEmpty && leave(groups[0]) == ["outsider"])
    #expect(leave(outsider).isEmpty && table.isEmpty)
  }

  @Test mutating func afterADeadlockAnotherIsLookedFor() {
    let group = enter("group", ["a": 1])
    _ = enter("first", ["a": 1, "b": 1])
    _ = enter("second", ["b": 1, "c": 1])
    _ = enter("member", ["c": 1], inside: [group])
    table.apply(table.beginDeadlockSearch().remedy(), &effects)
    #expect(table.mayDeadlock)
  }

  @Test mutating func aDeadlockOfOneHolderAmongSeveralIsNone() {
    let group = enter("group", ["a": 2])
    let other = enter("other", ["a": 2])
    let enclosing = enter("enclosing", ["b": 1])
    _ = enter("member", ["b": 1], inside: [group])
    _ = enter("in enclosing", ["a": 2], inside: [enclosing])
    #expect(table.remedy().refused == nil, "the other holder finishes, and makes room")
    #expect(leave(other) == ["in enclosing"])
  }

  // MARK: Permitted operations

  @Test mutating func aPermittedOperationIsWaitedForUntilItIsOverdue() {
    let (queue, other) = (Host(), Host())
    let permitted = enter("permitted", ["a": 1], host: queue)
    let next = enter("next", ["a": 1], host: queue)
    let stranger = enter("stranger", ["a": 1], host: other)
    #expect(state(permitted) == .permitted && state(next) == .waiting && state(stranger) == .waiting)
    #expect(tick(1).isEmpty)
    #expect(tick(1) == ["stranger"], "the next one of its queue cannot come, either")
    #expect(table.start(stranger, waits: true, &effects))
    #expect(!table.start(permitted, waits: true, &effects), "it has been started and waits")
    #expect(leave(stranger) == ["permitted"])
    #expect(leave(permitted) == ["next"])
  }

  /// A waiter behind an overdue operation lets others pass in its other queues.
  @Test mutating func anOperationBehindAnOverdueOneIsPassedUnderItsOtherKeys() {
    let (queue, other) = (Host(), Host())
    let permitted = enter("permitted", ["a": 1], host: queue)
    let next = enter("next", ["a": 1, "b": 1], host: queue)
    let stranger = enter("stranger", ["b": 1], host: other)
    #expect(state(permitted) == .permitted && state(next) == .waiting && state(stranger) == .waiting)
    #expect(tick(2) == ["stranger"])
  }

  @Test mutating func anOverdueOperationThatFindsItsKeyFreeHasIt() {
    let queue = Host()
    let permitted = enter("permitted", ["a": 1, "b": 1], host: queue)
    let next = enter("next", ["a": 1], host: queue)
    #expect(tick(2).isEmpty && state(permitted) == .overdue)
    #expect(table.start(permitted, waits: false, &effects))
    #expect(leave(permitted) == ["next"])
    #expect(leave(next).isEmpty && table.isEmpty)
  }

  /// The patience grows with each time, so that a queue that is always busy starts the operation at some time.
  @Test mutating func anOperationThatWasOverdueIsWaitedForLonger() {
    let (queue, other) = (Host(), Host())
    let permitted = enter("permitted", ["a": 1], host: queue)
    var patience = 2
    for _ in 0..<6 {
      let next = enter("next", ["a": 1], host: other)
      #expect(tick(patience - 1).isEmpty)
      #expect(tick(1) == ["next"])
      #expect(table.start(next, waits: true, &effects) && !table.start(permitted, waits: false, &effects))
      #expect(leave(next) == ["permitted"])
      patience = min(patience * 4, 512)
    }
  }

  // MARK: Nothing is left

  @Test mutating func manyThatLeaveFromTheMiddleLeaveNothingBehind() {
    let holder = enter("holder", ["a": 1])
    for _ in 0..<10 {
      let tickets = (0..<500).map { _ in enter("waits", ["a": 1]) }
      for ticket in tickets { #expect(leave(ticket).isEmpty) }
      #expect(table.queues.first?.waiting.count ?? 0 < 128)
    }
    #expect(leave(holder).isEmpty && table.isEmpty)
  }

  @Test mutating func manyKeysThatHaveBeenUsedLeaveNothingBehind() {
    let tickets = (0..<20_000).map { enter("", ["\($0)": 1]) }
    for ticket in tickets { _ = leave(ticket) }
    #expect(table.isEmpty && table.queues.isEmpty)
  }
}
