import Soak
import Testing

@testable import Operations

/// The table of keys as a value.
struct KeyTableTests {
  private typealias Table = KeyTable<String>

  private static let domain = ExclusivityDomain()
  private var table = Table()
  private var effects: [Table.Effect] = []

  private final class Host: Sendable {}

  /// - Parameter host: Where it waits to be started. It is in hand without one.
  private mutating func enter(
    _ name: String,
    _ keys: [ExclusivityKey: Int],
    inside enclosing: [Int] = [],
    host: Host? = nil
  ) -> Int {
    let claims = keys.sorted { $0.key.description < $1.key.description }.map { key, limit in
      KeyClaim(domain: Self.domain, key: key, limit: limit)
    }
    let host = host.map { ObjectIdentifier($0) }
    return table.enter(name, claims, inside: enclosing, host: host, &effects) ?? -1
  }

  private func state(_ ticket: Int) -> KeyState? { table.entries[ticket]?.state }

  private func isWaiting(_ ticket: Int) -> Bool { state(ticket)?.isWaiting == true }

  private func isPermitted(_ ticket: Int) -> Bool { if case .permitted? = state(ticket) { true } else { false } }

  /// The claimants that have been granted their keys.
  private var granted: [String] {
    effects.compactMap { effect in
      switch effect {
      case .permit(let name), .resume(let name): name
      default: nil
      }
    }
  }

  /// - Returns: The claimants that proceed because of it.
  private mutating func leave(_ ticket: Int) -> [String] {
    effects = []
    table.leave(ticket, &effects)
    return granted
  }

  private mutating func tick(_ count: Int) -> [String] {
    effects = []
    for _ in 0..<count { table.tick(&effects) }
    return granted
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

  @Test mutating func preferredMembersDoNotWaitForEachOther() {
    let groups = [enter("A", ["a": 1]), enter("B", ["b": 1])]
    let outsider = enter("outsider", ["a": 1, "c": 1])
    let first = enter("in A", ["b": 1, "c": 1], inside: [groups[0]])
    let second = enter("in B", ["c": 1], inside: [groups[1]])
    #expect(isWaiting(first) && isWaiting(second))
    guard case .prefer(let members)? = table.beginDeadlockSearch().remedy() else {
      Issue.record("B holds what the member of A waits for")
      return
    }
    #expect(members == [second])
    table.apply(.prefer(members), &effects)
    #expect(leave(second).isEmpty && leave(groups[1]) == ["in A"])
    #expect(leave(first).isEmpty && leave(groups[0]) == ["outsider"])
    #expect(leave(outsider).isEmpty && table.isEmpty)
  }

  @Test mutating func afterADeadlockAnotherIsLookedFor() throws {
    let group = enter("group", ["a": 1])
    _ = enter("first", ["a": 1, "b": 1])
    _ = enter("second", ["b": 1, "c": 1])
    _ = enter("member", ["c": 1], inside: [group])
    let remedy = try #require(table.beginDeadlockSearch().remedy())
    table.apply(remedy, &effects)
    #expect(table.mayDeadlock)
  }

  @Test mutating func aDeadlockOfOneHolderAmongSeveralIsNone() {
    let group = enter("group", ["a": 2])
    let other = enter("other", ["a": 2])
    let enclosing = enter("enclosing", ["b": 1])
    _ = enter("member", ["b": 1], inside: [group])
    _ = enter("in enclosing", ["a": 2], inside: [enclosing])
    #expect(table.beginDeadlockSearch().remedy() == nil, "the other holder finishes, and makes room")
    #expect(leave(other) == ["in enclosing"])
  }

  // MARK: Permitted operations

  @Test mutating func aPermittedOperationIsWaitedForUntilItIsOverdue() {
    let (queue, other) = (Host(), Host())
    let permitted = enter("permitted", ["a": 1], host: queue)
    let next = enter("next", ["a": 1], host: queue)
    let stranger = enter("stranger", ["a": 1], host: other)
    #expect(isPermitted(permitted) && isWaiting(next) && isWaiting(stranger))
    #expect(tick(1).isEmpty)
    #expect(tick(1) == ["stranger"], "the next one of its queue cannot come, either")
    #expect(table.start(stranger, waits: true, &effects))
    #expect(!table.start(permitted, waits: true, &effects), "it has been started and waits")
    #expect(leave(stranger) == ["permitted"])
    #expect(leave(permitted) == ["next"])
  }

  /// Others may overtake a waiter behind an overdue operation in the wait queues of its other keys.
  @Test mutating func anOperationBehindAnOverdueOneIsPassedUnderItsOtherKeys() {
    let (queue, other) = (Host(), Host())
    let permitted = enter("permitted", ["a": 1], host: queue)
    let next = enter("next", ["a": 1, "b": 1], host: queue)
    let stranger = enter("stranger", ["b": 1], host: other)
    #expect(isPermitted(permitted) && isWaiting(next) && isWaiting(stranger))
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

  // MARK: Replacing

  /// Replaces everything under the key “a”.
  ///
  /// - Returns: The new entry, and the claimants to cancel.
  private mutating func replace(_ name: String, host: Host) throws -> (ticket: Int, cancelled: [String]) {
    effects = []
    let claim = KeyClaim(domain: Self.domain, key: "a", limit: 1, policy: .replace)
    let ticket = try #require(table.enter(name, [claim], inside: [], host: ObjectIdentifier(host), &effects))
    let cancelled = effects.compactMap { effect in if case .cancel(let name) = effect { name } else { nil } }
    return (ticket, cancelled)
  }

  @Test mutating func replacedWaitersLeaveAtOnceAndAHolderIsReplacedOnce() throws {
    let (queue, other) = (Host(), Host())
    let permitted = enter("permitted", ["a": 1], host: queue)
    let waiter = enter("waiter", ["a": 1, "b": 1])
    let stranger = enter("stranger", ["b": 1])
    #expect(isPermitted(permitted) && isWaiting(waiter) && isWaiting(stranger))
    let holder = try replace("holder", host: other)
    #expect(holder.cancelled == ["waiter", "permitted"] && granted == ["stranger"])
    #expect(state(permitted) == nil && state(waiter) == nil && isPermitted(holder.ticket))
    #expect(!table.start(waiter, waits: true, &effects), "the thread that cancels it may be late")
    #expect(table.start(holder.ticket, waits: true, &effects))
    let second = try replace("second", host: other)
    #expect(second.cancelled == ["holder"] && state(holder.ticket) == .replaced && isWaiting(second.ticket))
    let third = try replace("third", host: other)
    #expect(third.cancelled == ["second"] && state(second.ticket) == nil)
    #expect(leave(holder.ticket) == ["third"])
    #expect(leave(third.ticket).isEmpty && leave(stranger).isEmpty && table.isEmpty)
  }

  // MARK: Throttles

  /// The queue of the cancelled waiter is no longer in use when the permit of the next one ends.
  @Test mutating func aPermitThatEnds_servesWaitersOfTheSameWindow() throws {
    let throttled = KeyClaim(
      domain: Self.domain,
      key: "api",
      throttles: [KeyThrottle(count: 1, interval: .seconds(1))]
    )
    let others = (0..<5).map { enter("other", ["\($0)": 1]) }
    let first = try #require(table.enter("first", [throttled], inside: [], host: nil, &effects))
    let cancelled = try #require(table.enter("cancelled", [throttled], inside: [], host: nil, &effects))
    #expect(state(first) == .holding && isWaiting(cancelled))
    for ticket in [cancelled, first] + others { #expect(leave(ticket).isEmpty) }
    let host = Host()
    let next = try #require(table.enter("next", [throttled], inside: [], host: ObjectIdentifier(host), &effects))
    guard case .wait(_, let delay)? = effects.last else {
      Issue.record("the window is full")
      return
    }
    #expect(isWaiting(next))
    table.endDelay(delay, &effects)
    #expect(isPermitted(next))
    let last = try #require(table.enter("last", [throttled], inside: [], host: nil, &effects))
    #expect(isWaiting(last))
    #expect(leave(next).isEmpty)
    guard case .wait("last", let rest)? = effects.last else {
      Issue.record("a permit that is not used is no start")
      return
    }
    table.endDelay(rest, &effects)
    #expect(state(last) == .holding)
    #expect(leave(last).isEmpty && table.isEmpty)
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
