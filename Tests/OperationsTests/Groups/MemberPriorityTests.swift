import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// Changes of the priority of a member that has not started.
@Suite(.timeLimit(.minutes(5)))
struct MemberPriorityTests {
  struct Change: Sendable {
    let (index, priority): (Int, Operation.QueuePriority)

    init(_ index: Int, _ priority: Operation.QueuePriority) { (self.index, self.priority) = (index, priority) }
  }

  private static let changes: [([Change], String)] = [
    ([], "abc"),
    ([Change(2, .high)], "cab"),
    ([Change(0, .low)], "bca"),
    ([Change(2, .high), Change(1, .veryHigh)], "bca"),
    ([Change(2, .high), Change(2, .veryLow)], "abc"),
    ([Change(2, .high), Change(2, .low), Change(1, .veryLow)], "acb"),
    ([Change(0, .veryLow), Change(0, .veryHigh), Change(1, .low)], "acb"),
    ([Change(1, .high), Change(1, .veryHigh), Change(2, .high)], "bca"),
    ([Change(0, .low), Change(1, .veryLow), Change(1, .normal)], "bca"),
    ([Change(0, .high), Change(0, .normal)], "abc"),
    ([Change(1, .low), Change(0, .low), Change(1, .normal)], "bca"),
    ([Change(2, .high), Change(0, .high)], "acb"),
  ]

  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func notes() -> [NoteOperation] { ["a", "b", "c"].map { NoteOperation($0, journal) } }

  @Test(arguments: Self.changes, [true, false])
  func aChangeOfAReadyMember_counts(_ expected: (changes: [Change], order: String), isStarted: Bool) async {
    let (held, members) = (HeldOperation(), notes())
    held.queuePriority = .veryHigh
    let group = GroupOperation([held] + members)
    group.maxConcurrentOperationCount = 1
    if isStarted { await queue.add(group, until: held.begun) }
    for change in expected.changes { members[change.index].queuePriority = change.priority }
    if !isStarted { await queue.add(group, until: held.begun) }
    await group.finished(opening: held.gate)
    #expect(journal.entries.joined() == expected.order && group.isSuccessful)
  }

  @Test func plainMemberRaisedBeforeItsGroupStarts_comesFirst() async {
    let members = ["a", "b"].map { plain($0, journal) }
    let group = GroupOperation(members)
    group.maxConcurrentOperationCount = 1
    members[1].queuePriority = .high
    await queue.run(settling: [group])
    #expect(journal.entries == ["b", "a"])
  }

  @Test func plainMemberRaisedWhileItWaitsForAnother_comesFirst() async {
    let (held, members) = (HeldOperation(), ["a", "b"].map { plain($0, journal) })
    held ==> members
    let group = GroupOperation([held] + members)
    group.maxConcurrentOperationCount = 1
    await queue.add(group, until: held.begun)
    members[1].queuePriority = .high
    group.isSuspended = true
    await held.finished(opening: held.gate)
    await poll { group.engine.state.withLock { $0.schedule.ready.count } == 2 }
    group.isSuspended = false
    await group.finished()
    #expect(journal.entries == ["b", "a"])
  }

  @Test func aMemberAddedLater_takesThePriorityLentToItsGroupBeforeItIsOrdered() async {
    let (held, members) = (HeldOperation(), notes())
    let group = GroupOperation([held])
    group.maxConcurrentOperationCount = 1
    await queue.add(group, until: held.begun)
    group.escalatePriority(to: .high)
    members[1].queuePriority = .high
    for member in members { group.addOperation(member) }
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["a", "b", "c"])
  }

  @Test func aPlainMemberCanBeLowered() async {
    let (held, members) = (HeldOperation(), ["a", "b"].map { plain($0, journal) })
    let group = GroupOperation([held] + members)
    group.maxConcurrentOperationCount = 1
    await queue.add(group, until: held.begun)
    members[0].queuePriority = .low
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["b", "a"])
  }

  @Test func aMemberThatIsRaisedAndCancelled_finishesOnce() async {
    let (held, members) = (HeldOperation(), notes())
    let group = GroupOperation([held] + members)
    group.maxConcurrentOperationCount = 1
    await queue.add(group, until: held.begun)
    members[1].queuePriority = .high
    members[1].cancel()
    await members[1].finished()
    members[1].queuePriority = .veryHigh
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["a", "c"] && group.operations.isEmpty)
  }

  /// A raised member is in the list of ready members twice. It must not be resumed instead of started.
  @Test func aRaisedMemberThatBacksOff_doesNotResumeEarly() async throws {
    let (held, clock, attempts) = (HeldOperation(), ManualClock(), Journal<Int>())
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(10))) { attempt in
      ResultOperation<Int> {
        attempts.write(attempt)
        if attempt == 1 { throw TestError("first attempt") }
        return attempt
      }
    }
    let last = HeldOperation()
    last.queuePriority = .veryLow
    let group = GroupOperation([held, retry, last])
    (group.clock, group.maxConcurrentOperationCount) = (clock, 1)
    await queue.add(group, until: held.begun)
    retry.queuePriority = .high
    held.gate.open()
    await clock.waitForSleepers(1)
    await last.begun.opened()
    #expect(attempts.entries == [1])
    last.gate.open()
    await last.finished()
    await group.waitForRoom(below: 2)
    #expect(attempts.entries == [1] && !retry.isFinished)
    clock.advance(by: .seconds(10))
    await group.finished()
    #expect(attempts.entries == [1, 2] && retry.isSuccessful)
  }

  @Test func aRetryThatIsRaisedWhileItWaitsForASlotAfterItsPause_comesFirst() async {
    let (clock, held, journal) = (ManualClock(), HeldOperation(), journal)
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(10))) { attempt in
      ResultOperation<Int> {
        journal.write("attempt \(attempt)")
        if attempt == 1 { throw TestError("first attempt") }
        return attempt
      }
    }
    let members = notes()
    for member in members { member.queuePriority = .low }
    let group = GroupOperation([retry, held] + members)
    (group.clock, group.maxConcurrentOperationCount) = (clock, 1)
    await queue.add(group, until: held.begun)
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(10))
    await poll { retry.core.withLock { $0.lifecycle.phase } == .paused(.slot) }
    for member in members { member.queuePriority = .normal }
    retry.queuePriority = .high
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["attempt 1", "attempt 2", "a", "b", "c"])
  }

  @Test(arguments: [true, false])
  func aPriorityThatVaries_doesNotHang(isLimited: Bool) async {
    final class Varying: AsyncOperation, @unchecked Sendable {
      private let count = Locked(0)

      override var queuePriority: Operation.QueuePriority {
        get {
          let count = count.withLock { count in
            count += 1
            return count
          }
          return [.veryHigh, .high, .normal, .low, .veryLow][count % 5]
        }
        set { super.queuePriority = newValue }
      }
    }
    let members = (0..<500).map { _ in Varying() }
    let group = GroupOperation(members)
    if isLimited { group.maxConcurrentOperationCount = 1 }
    queue.addOperation(group)
    for member in members { member.queuePriority = .veryHigh }
    await group.finished()
    #expect(members.allSatisfy { $0.isSuccessful })
  }

  @Test func aPriorityThatRisesUnseenWhileItsKeyIsTaken_counts() async {
    let (domain, member, held) = (ExclusivityDomain(), PriorityOperation(.normal), HeldOperation())
    member.exclusive("key", in: domain).addObserver(
      OperationObserver(didStart: { [journal] _ in journal.write("member") })
    )
    let holder = HeldOperation().exclusive("key", in: domain)
    await queue.add(holder, until: holder.begun)
    let group = GroupOperation([held], maxConcurrentOperationCount: 1)
    await queue.add(group, until: held.begun)
    group.addOperations([NoteOperation("note", journal), member])
    member.priority.withLock { $0 = .veryHigh }
    holder.gate.open()
    await poll { member.core.withLock { $0.lifecycle.phase } == .pending(.slot) }
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["member", "note"])
  }

  @Test func prioritiesThatChangeWhileMembersRun_loseNoMember() async {
    let members = (0..<2_000).map { NoteOperation("\($0)", journal) }
    let group = GroupOperation(members)
    group.maxConcurrentOperationCount = 2
    queue.addOperation(group)
    let priorities: [Operation.QueuePriority] = [.veryHigh, .low, .high, .veryLow, .normal]
    await onThreads(2) { thread in
      for index in 0..<4_000 { members[(index * 7) % 2_000].queuePriority = priorities[(index + thread) % 5] }
    }
    await group.finished()
    #expect(Set(journal.entries).count == 2_000 && journal.count == 2_000)
  }
}
