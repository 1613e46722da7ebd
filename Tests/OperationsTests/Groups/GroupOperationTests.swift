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
    let d = note("d")
    #expect(GroupOperation([d, d]).operations == [d])
  }

  @Test func theBuilderTakesInTheWholeChain() async throws {
    let (a, b, c) = (note("a"), plain("b", journal), note("c"))
    let group = GroupOperation("named") { a ==> b ==> c }
    #expect(group.name == "named" && group.operations == [a, b, c])
    try await queue.run(group)
    #expect(journal.entries == ["a", "b", "c"] && group.operations.isEmpty)
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

  @Test func aMemberMayAddMembersAndSoMayItsDescendants() async throws {
    let outer = GroupOperation()
    let depths = Journal<Int>()
    @Sendable func add(_ depth: Int, to group: GroupOperation) {
      group.addOperation(
        ResultOperation {
          depths.write(depth)
          guard depth > 0 else { return }
          for _ in 0..<3 { add(depth - 1, to: depth.isMultiple(of: 2) ? group : outer) }
          let inner = GroupOperation()
          add(depth - 1, to: inner)
          outer.addOperation(inner)
        }
      )
    }
    add(4, to: outer)
    try await queue.run(outer)
    #expect(depths.count == 1 + 4 + 16 + 64 + 256 && outer.operations.isEmpty)
  }

  @Test func anObserverOfTheLastMemberMayAddAnother() async throws {
    let last = note("last")
    let group = GroupOperation([last])
    last.addObserver(OperationObserver(didFinish: { _ in group.addOperation(NoteOperation("one more", journal)) }))
    try await queue.run(group)
    #expect(journal.entries == ["last", "one more"])
  }

  @Test func manyThreadsMayAddBeforeAndWhileItRuns() async {
    let held = HeldOperation()
    let group = GroupOperation()
    group.addOperation(held)
    await queue.add(group, until: held.begun)
    await onThreads(4) { thread in
      for index in 0..<125 { group.addOperations([note("\(thread) \(index)"), note("\(thread) \(index) b")]) }
    }
    #expect(!group.isFinished)
    held.gate.open()
    await group.finished()
    #expect(Set(journal.entries).count == 1000)
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
          running.withLock { $0 = (now: $0.now + 1, most: max($0.most, $0.now + 1)) }
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
    await queue.run(settling: [note("other")])
    #expect(journal.entries == ["other"])
    group.maxConcurrentOperationCount = 1
    await group.finished()
    #expect(journal.entries == ["other", "a", "b"])
  }

  @Test func aSuspendedGroupStartsNothingMore() async {
    let held = HeldOperation()
    let next = note("next")
    let group = GroupOperation { held ==> next }
    await queue.add(group, until: held.begun)
    group.isSuspended = true
    held.gate.open()
    await held.finished()
    #expect(group.isSuspended && next.isReady && next.state == .pending && !group.isFinished)
    group.isSuspended = false
    await group.finished()
    #expect(journal.entries == ["next"])
  }

  @Test func aGroupThatBeginsSuspendedAndEmptyWaitsForMembers() async {
    let (group, began) = (GroupOperation(), Gate())
    group.isSuspended = true
    group.addObserver(OperationObserver(didStart: { _ in began.open() }))
    await queue.add(group, until: began)
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
    let group = GroupOperation { urgent ==> note("after") }
    group.qualityOfService = .utility
    group.maxConcurrentOperationCount = 1
    try await queue.run(group)
    #expect(journal.entries == ["urgent", "after"])
  }

  /// The sibling blocks its runner. In one case it first finishes the operation that the other member waits for.
  @Test(arguments: [false, true])
  func aMemberThatBecomesReadyIsNotHeldUpByASiblingThatBlocks(madeReadyByIt: Bool) async {
    let (held, due, release, began) = (HeldOperation(), note("due"), Gate(), Gate())
    held ==> due
    let blocker = AsyncBlockOperation { operation in
      began.open()
      if madeReadyByIt { held.gate.open() }
      release.pass()
      operation.finish()
    }
    if madeReadyByIt { await OperationQueue().add(held, until: held.begun) }
    let group = GroupOperation(madeReadyByIt ? [blocker, due] : [held, blocker, due])
    await queue.add(group, until: held.begun)
    await began.opened()
    held.gate.open()
    await due.finished()
    #expect(!blocker.isFinished)
    release.open()
    await group.finished()
  }

  @Test func aMemberMayFinishAndThenWaitForItsSuccessor() async {
    let release = Gate()
    let first = AsyncBlockOperation { operation in
      operation.finish()
      release.pass()
    }
    let group = GroupOperation { first ==> ResultOperation { release.open() } }
    group.maxConcurrentOperationCount = 1
    await queue.run(settling: [group])
  }

  @Test func aPriorityThatAsksTheGroupIsNoDeadlock() async throws {
    final class Asking: Operation, @unchecked Sendable {
      weak var group: GroupOperation?
      override var queuePriority: Operation.QueuePriority {
        get { (group?.operations.count ?? 0) > 1 ? .high : .low }
        set { super.queuePriority = newValue }
      }
    }
    let (member, group) = (Asking(), GroupOperation())
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

  // MARK: Dependencies outside

  @Test(arguments: [true, false])
  func dependenciesOutsideWhicheverSideIsEnqueuedFirst(groupFirst: Bool) async {
    let (outside, member, after) = (note("outside"), note("member"), note("after"))
    outside ==> member ==> after
    let (group, other) = (GroupOperation([member]), OperationQueue())
    if groupFirst { queue.addOperation(group) }
    other.addOperation(outside)
    if !groupFirst { queue.addOperation(group) }
    other.addOperation(after)
    await after.finished()
    #expect(journal.entries == ["outside", "member", "after"])
  }

  @Test func aDependencyMayBeAddedToAMemberThatWaits() async {
    let (first, second, member) = (HeldOperation(), HeldOperation(), note("member"))
    first ==> member
    let group = GroupOperation([first, second, member])
    await queue.add(group, until: first.begun)
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
    await queue.add(group, until: held.begun)
    #expect(group.operations(named: "a") == [held, waiting])
    #expect(group.cancelOperations(named: "a") == 2)
    held.gate.open()
    await group.finished()
    #expect(journal.entries.isEmpty)
  }
}
