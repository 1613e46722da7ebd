import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct GroupOperationTests {
  private let journal = Journal<String>()
  private let queue = OperationQueue()

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  // MARK: What is in it

  @Test func theBuilderTakesInTheWholeChain() async throws {
    let (a, b, c) = (note("a"), note("b"), note("c"))
    let group = GroupOperation { a ==> b ==> c }
    #expect(group.operations == [a, b, c])
    try await queue.run(group)
    #expect(journal.entries == ["a", "b", "c"])
    #expect(group.operations.isEmpty)
  }

  @Test func theBuilderCountsARepeatedOneOnce() {
    let (a, b, c) = (note("a"), note("b"), note("c"))
    let group = GroupOperation {
      a ==> b
      a ==> c
      [a, b]
      for operation in [b, c] { operation }
      if b.dependencies.isEmpty { note("never") } else { c }
    }
    #expect(group.operations == [a, b, c])
    #expect(GroupOperation([a, b].map { _ in note("x") }).operations.count == 2)
    let d = note("d")
    #expect(GroupOperation([d, d]).operations == [d])
  }

  @Test func theBuilderTakesInPlainOperations() async throws {
    let (a, b) = (plain("a", journal), plain("b", journal))
    let c = note("c")
    let group = GroupOperation("named") { a ==> b ==> c }
    #expect(group.name == "named" && group.operations == [a, b, c])
    try await queue.run(group)
    #expect(journal.entries == ["a", "b", "c"])
  }

  @Test func namedArrays_haveExactlyTheirMembers() async throws {
    let (a, b) = (note("a"), note("b"))
    a ==> b
    let (empty, group) = (GroupOperation().named("empty"), GroupOperation([b]).named("exactly"))
    #expect(empty.name == "empty" && empty.operations.isEmpty)
    #expect(group.name == "exactly" && group.operations == [b])
    final class Crawl: GroupOperation, @unchecked Sendable {
      init() { super.init("Crawl") {} }
    }
    #expect(Crawl().name == "Crawl")
    empty.addOperation(a)
    queue.addOperations([group, empty])
    await queue.finished()
    #expect(journal.entries == ["a", "b"])
  }

  @Test func theBuilderLeavesWhatIsElsewhere() async throws {
    let suspended = OperationQueue.suspended()
    let (outside, inside) = (note("outside"), note("inside"))
    outside ==> inside
    suspended.addOperation(outside)
    let group = GroupOperation { inside }
    #expect(group.operations == [inside])
    queue.addOperation(group)
    suspended.isSuspended = false
    await group.finished()
    #expect(journal.entries == ["outside", "inside"])
  }

  @Test func anArrayIsExactlyThat() {
    let (a, b) = (note("a"), note("b"))
    a ==> b
    #expect(GroupOperation([b]).operations == [b])
  }

  @Test func anEmptyGroupFinishes() async throws {
    try await queue.run(GroupOperation())
    try await queue.run(GroupOperation {})
  }

  @Test func aGroupMayBeStartedByHand() async {
    let group = GroupOperation([note("a")])
    await start(group)
    await group.finished()
    #expect(journal.entries == ["a"])
  }

  @Test func observersHearBeforeTheFirstAndAfterTheLastMember() async throws {
    for _ in 0..<100 {
      let journal = Journal<String>()
      let group = GroupOperation { NoteOperation("a", journal) ==> NoteOperation("b", journal) }
      group.addObserver(
        OperationObserver(didStart: { _ in journal.write("start") }, didFinish: { _ in journal.write("finish") })
      )
      try await queue.run(group)
      #expect(journal.entries == ["start", "a", "b", "finish"])
    }
  }

  // MARK: Adding

  @Test func membersMayBeAddedBeforeAndWhileItRuns() async throws {
    let held = HeldOperation()
    let group = GroupOperation()
    group.addOperation(held)
    queue.addOperation(group)
    await held.begun.opened()
    let late = note("late")
    group.addOperations([late, note("later")])
    await late.finished()
    #expect(!group.isFinished)
    held.gate.open()
    await group.finished()
    #expect(Set(journal.entries) == ["late", "later"])
  }

  @Test func aMemberMayAddMembersAndSoMayItsDescendants() async throws {
    let outer = GroupOperation().named("outer")
    let count = Journal<Int>()
    @Sendable func add(_ depth: Int, to group: GroupOperation) {
      group.addOperation(
        AsyncBlockOperation { operation in
          count.write(depth)
          if depth > 0 {
            for _ in 0..<3 { add(depth - 1, to: depth.isMultiple(of: 2) ? group : outer) }
            let inner = GroupOperation()
            if depth > 1 { add(depth - 2, to: inner) }
            outer.addOperation(inner)
          }
          operation.finish()
        }
      )
    }
    add(5, to: outer)
    try await queue.run(outer)
    #expect(count.count == count.entries.count && count.entries.filter { $0 == 4 }.count == 3)
    #expect(outer.operations.isEmpty)
  }

  @Test func anObserverOfTheLastMemberMayAddAnother() async throws {
    let last = note("last")
    let group = GroupOperation([last])
    last.addObserver(OperationObserver(didFinish: { _ in group.addOperation(NoteOperation("one more", journal)) }))
    try await queue.run(group)
    #expect(journal.entries == ["last", "one more"])
  }

  @Test func manyThreadsMayAdd() async {
    let held = HeldOperation()
    let group = GroupOperation([held])
    queue.addOperation(group)
    await held.begun.opened()
    await onThreads(4) { thread in
      for index in 0..<250 { group.addOperation(NoteOperation("\(thread) \(index)", journal)) }
    }
    held.gate.open()
    await group.finished()
    #expect(Set(journal.entries).count == 1000)
  }

  @Test func addingToACancelledGroupFinishesTheNewcomerUnexecuted() async {
    let group = GroupOperation([note("a")])
    group.cancel()
    let early = note("early")
    group.addOperation(early)
    queue.addOperation(group)
    await group.finished()
    let late = note("late")
    let latePlain = plain("late plain", journal)
    let lateGroup = GroupOperation([note("inner")])
    group.addOperations([late, latePlain, lateGroup])
    await lateGroup.finished()
    #expect(early.isFinished && early.isCancelled)
    #expect(late.isFinished && late.isCancelled)
    #expect(latePlain.isFinished && latePlain.isCancelled)
    #expect(lateGroup.isCancelled)
    #expect(journal.entries.isEmpty)
  }

  // MARK: How they run

  @Test(arguments: 1...4)
  func theLimitIsKept(limit: Int) async throws {
    let running = Locked((now: 0, most: 0))
    let group = GroupOperation()
    group.maxConcurrentOperationCount = limit
    for index in 0..<60 {
      group.addOperation(
        AsyncBlockOperation { operation in
          running.withLock { running in
            running.now += 1
            running.most = max(running.most, running.now)
          }
          @Sendable func end() {
            running.withLock { $0.now -= 1 }
            operation.finish()
          }
          if index.isMultiple(of: 2) { DispatchQueue.global().async { end() } } else { end() }
        }
      )
    }
    #expect(group.maxConcurrentOperationCount == limit)
    try await queue.run(group)
    #expect(running.withLock { $0.most } <= limit)
  }

  @Test func aLimitOfZeroStartsNothingUntilItIsRaised() async {
    let group = GroupOperation([note("a"), note("b")])
    group.maxConcurrentOperationCount = 0
    queue.addOperation(group)
    let other = note("other")
    queue.addOperation(other)
    await other.finished()
    #expect(journal.entries == ["other"])
    group.maxConcurrentOperationCount = 1
    await group.finished()
    #expect(journal.entries == ["other", "a", "b"])
  }

  @Test func asynchronousMembersKeepTheirSlot() async {
    let (first, second) = (HeldOperation(), HeldOperation())
    let group = GroupOperation([first, second])
    group.maxConcurrentOperationCount = 1
    queue.addOperation(group)
    await first.begun.opened()
    #expect(second.state == .pending)
    first.gate.open()
    await second.begun.opened()
    second.gate.open()
    await group.finished()
  }

  @Test func aSuspendedGroupStartsNothingMore() async {
    let held = HeldOperation()
    let next = note("next")
    let group = GroupOperation { held ==> next }
    queue.addOperation(group)
    await held.begun.opened()
    group.isSuspended = true
    #expect(group.isSuspended)
    held.gate.open()
    await held.finished()
    #expect(next.isReady && next.state == .pending && !group.isFinished)
    group.isSuspended = false
    await group.finished()
    #expect(journal.entries == ["next"])
  }

  @Test func aGroupThatBeginsSuspendedAndEmptyWaitsForMembers() async {
    let group = GroupOperation()
    group.isSuspended = true
    let began = Gate()
    group.addObserver(OperationObserver(didStart: { _ in began.open() }))
    queue.addOperation(group)
    await began.opened()
    group.addOperation(note("a"))
    #expect(!group.isFinished)
    group.isSuspended = false
    await group.finished()
    #expect(journal.entries == ["a"])
    let unneeded = GroupOperation()
    unneeded.isSuspended = true
    queue.addOperation(unneeded)
    unneeded.finish(with: TestError("no members will come"))
    await unneeded.finished()
  }

  @Test func higherPriorityComesFirstThenFirstComeFirstServed() async throws {
    let priorities: [Operation.QueuePriority] = [.low, .normal, .veryLow, .high, .normal, .veryHigh, .low]
    let members = priorities.enumerated().map { index, priority in
      let member = note("\(index)")
      member.queuePriority = priority
      return member
    }
    let group = GroupOperation(members)
    group.maxConcurrentOperationCount = 1
    try await queue.run(group)
    #expect(journal.entries == ["5", "3", "1", "4", "0", "6", "2"])
  }

  @Test func aMemberWithItsOwnQualityOfServiceRuns() async throws {
    let urgent = note("urgent")
    urgent.qualityOfService = .userInteractive
    let after = note("after")
    let group = GroupOperation { urgent ==> after }
    group.qualityOfService = .utility
    group.maxConcurrentOperationCount = 1
    try await queue.run(group)
    #expect(journal.entries == ["urgent", "after"])
  }

  @Test func aMemberThatBecomesReadyIsNotHeldUpByASiblingThatBlocks() async {
    let release = DispatchSemaphore(value: 0)
    let held = HeldOperation()
    let due = note("due")
    held ==> due
    let blockerBegan = Gate()
    // It blocks its runner; the one that becomes ready meanwhile must get another.
    let blocker = AsyncBlockOperation { operation in
      blockerBegan.open()
      release.wait()
      operation.finish()
    }
    let group = GroupOperation([held, blocker, due])
    queue.addOperation(group)
    await held.begun.opened()
    await blockerBegan.opened()
    held.gate.open()
    await due.finished()
    #expect(!blocker.isFinished)
    release.signal()
    await group.finished()
  }

  @Test func aMemberMadeReadyByARunningSiblingDoesNotWaitForIt() async {
    let release = DispatchSemaphore(value: 0)
    let outside = HeldOperation()
    let due = note("due")
    outside ==> due
    OperationQueue().addOperation(outside)
    await outside.begun.opened()
    // It ends an operation outside the group on its own thread, and then goes on: its runner is not about to take the
    // next.
    let busy = AsyncBlockOperation { operation in
      outside.gate.open()
      release.wait()
      operation.finish()
    }
    let group = GroupOperation([busy, due])
    queue.addOperation(group)
    await due.finished()
    #expect(!busy.isFinished)
    release.signal()
    await group.finished()
  }

  @Test func aMemberMayFinishAndThenWaitForItsSuccessor() async {
    let release = DispatchSemaphore(value: 0)
    let first = AsyncBlockOperation { operation in
      operation.finish()
      release.wait()
    }
    let second = AsyncBlockOperation { operation in
      release.signal()
      operation.finish()
    }
    first ==> second
    let group = GroupOperation([first, second])
    group.maxConcurrentOperationCount = 1
    queue.addOperation(group)
    await group.finished()
  }

  @Test func aPriorityThatAsksTheGroupIsNoDeadlock() async throws {
    final class Asking: Operation, @unchecked Sendable {
      weak var group: GroupOperation?
      override var queuePriority: Operation.QueuePriority {
        get { (group?.operations.count ?? 0) > 1 ? .high : .low }
        set { super.queuePriority = newValue }
      }
    }
    let member = Asking()
    let group = GroupOperation()
    member.group = group
    group.addOperation(member)
    try await queue.run(group)
  }

  @Test(arguments: [1, 10, 400])
  func nestingInAQueueOfOneCostsNoThread(depth: Int) async throws {
    let queue = OperationQueue.limited(to: 1)
    var group = GroupOperation([note("innermost")])
    for _ in 0..<depth { group = GroupOperation([group, AsyncOperation()]) }
    try await queue.run(group)
    #expect(journal.entries == ["innermost"])
  }

  @Test func aGroupAndItsMembersMayBelongToAQueueOfOneTogether() async throws {
    let queue = OperationQueue.limited(to: 1)
    let group = GroupOperation { note("a") ==> note("b") }
    let after = note("after")
    group ==> after
    queue.addOperations([after, group])
    await after.finished()
    #expect(journal.entries == ["a", "b", "after"])
  }

  // MARK: Plain Foundation members

  @Test func plainMembersOfAllKinds() async throws {
    let classic = ClassicOperation()
    let (a, b) = (plain("a", journal), plain("b", journal))
    classic ==> a ==> b
    b ==> note("own")
    let group = GroupOperation([classic, a, b] + [note("other")])
    queue.addOperation(group)
    await classic.begun.opened()
    #expect(!a.isReady)
    classic.gate.open()
    await group.finished()
    #expect(journal.entries.filter { $0 != "other" } == ["a", "b"])
    #expect(group.operations.isEmpty)
  }

  @Test func aPlainMemberWaitsForOperationsOutside() async {
    let (outside, outsidePlain) = (HeldOperation(), ClassicOperation())
    let member = plain("member", journal)
    [outside, outsidePlain] ==> member
    let group = GroupOperation([member])
    queue.addOperation(group)
    OperationQueue().addOperations([outside, outsidePlain])
    await outside.begun.opened()
    await outsidePlain.begun.opened()
    outside.gate.open()
    outsidePlain.gate.open()
    await group.finished()
    #expect(journal.entries == ["member"])
  }

  @Test func manyPlainMembersInAChain() async throws {
    let members = (0..<300).map { plain("\($0)", journal) }
    for (first, second) in zip(members, members.dropFirst()) { first ==> second }
    try await queue.run(GroupOperation(members.shuffled()))
    #expect(journal.entries == (0..<300).map(String.init))
  }

  @Test func aCancelledGroupFinishesPlainMembersToo() async {
    for _ in 0..<100 {
      let outside = ClassicOperation()
      do {
        let waiting = plain("waiting", journal)
        outside ==> waiting
        let group = GroupOperation([waiting, plain("ready", journal)])
        group.cancel()
        queue.addOperation(group)
        await group.finished()
        #expect(waiting.isFinished)
      }
      // Foundation refers to the member, which nobody else holds any more, at this moment.
      OperationQueue().addOperation(outside)
      outside.gate.open()
      await outside.finished()
    }
    #expect(journal.entries.isEmpty)
  }

  // MARK: Dependencies outside

  @Test(arguments: [true, false])
  func dependenciesOutsideWhicheverSideIsEnqueuedFirst(groupFirst: Bool) async {
    let outside = note("outside")
    let member = note("member")
    let after = note("after")
    outside ==> member ==> after
    let group = GroupOperation([member])
    let other = OperationQueue()
    if groupFirst {
      queue.addOperation(group)
      other.addOperation(outside)
    } else {
      other.addOperation(outside)
      queue.addOperation(group)
    }
    other.addOperation(after)
    await after.finished()
    #expect(journal.entries == ["outside", "member", "after"])
  }

  @Test func aDependencyMayBeAddedToAMemberThatWaits() async {
    let (first, second) = (HeldOperation(), HeldOperation())
    let member = note("member")
    first ==> member
    let group = GroupOperation([first, second, member])
    queue.addOperation(group)
    await first.begun.opened()
    second ==> member
    first.gate.open()
    await first.finished()
    #expect(member.state == .pending)
    second.gate.open()
    await group.finished()
    #expect(journal.entries == ["member"])
  }

  @Test func namesFindAndCancelMembers() async {
    let held = HeldOperation().named("a")
    let waiting = note("a")
    let group = GroupOperation { held ==> waiting }
    queue.addOperation(group)
    await held.begun.opened()
    #expect(group.operations(named: "a") == [held, waiting])
    #expect(group.cancelOperations(named: "a") == 2)
    held.gate.open()
    await group.finished()
    #expect(journal.entries.isEmpty)
  }

  @Test func aHookThatAddsMembersEndsWhenItChecksForCancellation() async {
    final class Feeding: GroupOperation, @unchecked Sendable {
      override func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] {
        if !isCancelled { addOperation(AsyncOperation()) }
        return errors
      }
    }
    let group = Feeding([AsyncOperation()])
    queue.addOperation(group)
    group.cancel()
    await group.finished()
    #expect(group.isCancelled)
  }
}
