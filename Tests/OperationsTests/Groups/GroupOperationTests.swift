import Foundation
import OperationsTestSupport
import Soak
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
  }

  @Test func theBuilderTakesInTheWholeChain() async {
    let (a, b, c) = (note("a"), plain("b", journal), note("c"))
    let group = GroupOperation("named") { a ==> b ==> c }
    #expect(group.name == "named" && group.operations == [a, b, c])
    // A group needs no queue.
    await start(group)
    await group.finished()
    #expect(journal.entries == ["a", "b", "c"] && group.operations.isEmpty)
  }

  @Test func theBuilderTakesInBothSidesOfEveryOperatorInside() {
    let (a, b, c, d) = (note("a"), plain("b", journal), plain("c", journal), note("d"))
    let group = GroupOperation {
      let last = [a, b] ==> c
      let nested = GroupOperation("nested") { note("e") ==> note("f") }
      d.waits(for: last)
      nested
    }
    #expect(group.operations.map(\.displayName) == ["a", "b", "c", "d", "nested"])
  }

  @Test func membersOfAnInnerGroupThatAreJoinedInBraces_stayWhereTheyAre() async throws {
    let (a, b, c) = (NoteOperation("a", journal), NoteOperation("b", journal), NoteOperation("c", journal))
    let plain = plain("plain", journal)
    let inner = GroupOperation { [b, plain] }
    let group = GroupOperation {
      inner
      a ==> b
      a ==> plain
      [b, plain] ==> c
    }
    #expect(Set(group.operations) == [inner, a, c] && inner.operations == [b, plain])
    try await queue.run(group)
    #expect(journal.entries.first == "a" && journal.entries.last == "c" && journal.count == 4)
  }

  @Test func theBuilderLeavesPlainDependenciesThatWereAttachedOutside() async {
    let suspended = OperationQueue.suspended()
    let (queued, free, inside) = (plain("queued", journal), plain("free", journal), note("inside"))
    [queued, free] ==> inside
    suspended.addOperation(queued)
    let (group, graph) = (GroupOperation { inside }, GroupOperation())
    #expect(group.operations == [inside])
    graph.addGraph(endingIn: free ==> note("last"))
    #expect(graph.operations.map(\.displayName) == ["free", "last"])
    queue.addOperations([group, graph])
    suspended.isSuspended = false
    await group.finished()
    await graph.finished()
    #expect(Set(journal.entries) == ["queued", "free", "inside", "last"])
  }

  @Test func namedArrays_haveExactlyTheirMembers() async {
    let (a, b) = (note("a"), note("b"))
    a ==> b
    let (empty, group) = (GroupOperation().named("empty"), GroupOperation([b]).named("exactly"))
    #expect(empty.name == "empty" && empty.operations.isEmpty)
    #expect(group.name == "exactly" && group.operations == [b])
    empty.addOperation(a)
    queue.addOperations([group, empty])
    await queue.finished()
    #expect(journal.entries == ["a", "b"])
  }

  @Test func theBuilderLeavesWhatIsElsewhere() async {
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

  @Test func aGraphLeavesAMemberOfAnotherGroupAlone() async {
    let (held, shared) = (HeldOperation(), note("shared"))
    let (first, second) = (GroupOperation((0..<5).map { _ in AsyncOperation() }), GroupOperation([held, shared]))
    // A claim would give the operation an index of the first group.
    first.addGraph(endingIn: shared)
    queue.addOperation(second)
    await shared.finished()
    await poll { second.operations.count != 2 }
    #expect(second.operations == [held])
    second.cancel()
    #expect(held.isCancelled)
    await second.finished(opening: held.gate)
    first.cancel()
  }

  @Test func aGraphAddedToACancelledGroupLeavesAloneWhatRunsElsewhere() async {
    let (held, last, group) = (HeldOperation(), note("last"), GroupOperation())
    held ==> last
    await queue.add(held, until: held.begun)
    group.cancel()
    group.addGraph(endingIn: held)
    #expect(!held.isCancelled)
    await queue.run(settling: [group])
    group.addGraph(endingIn: held)
    group.addGraph(endingIn: last)
    #expect(!held.isCancelled && last.isCancelled && last.isFinished)
    await held.finished(opening: held.gate)
  }

  @Test(arguments: [false, true])
  func aGroupThatIsCancelledWhileAGraphIsAdded_leavesAloneWhatAnotherGroupHasTaken(isPlain: Bool) async {
    let (held, probe, last) = (HeldOperation(), PriorityProbe(), note("last"))
    let (group, other) = (GroupOperation(), GroupOperation([held]))
    let taken = isPlain ? BlockOperation {} : note("taken")
    await queue.add(other, until: held.begun)
    probe ==> taken ==> last
    probe.isRead.withLock {
      $0 = {
        guard group.operations.contains(taken), !other.operations.contains(taken) else { return }
        other.addOperation(taken)
        group.cancel()
      }
    }
    group.addGraph(endingIn: last)
    probe.isRead.withLock { $0 = {} }
    #expect(other.operations.contains(taken) && !taken.isCancelled && last.isCancelled && probe.isCancelled)
    await queue.run(settling: [group])
    await other.finished(opening: held.gate)
    #expect(taken.isFinished && !taken.isCancelled && last.isFinished)
  }

  @Test(arguments: [false, true]) func cycleAddedInOneCall_isCancelledAsAWhole(isPlain: Bool) async {
    for _ in 0..<(isThorough ? 20 : 3) {
      let group = GroupOperation()
      group.staysOpen = true
      await queue.begin(group)
      let members: [Operation] = (0..<1_002).map { isPlain ? plain("\($0)", journal) : note("\($0)") }
      chain(members)
      members[1_001] ==> members[0]
      // The end of the first member starts a search for cycles.
      group.addOperations([AsyncOperation()] + members)
      group.staysOpen = false
      await group.finished()
      #expect(group.errors.count == 1_002 && journal.entries.isEmpty)
    }
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

  // MARK: How they run

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

  @Test func aGroupThatBeginsSuspendedAndEmptyWaitsForMembers() async {
    let group = GroupOperation()
    group.isSuspended = true
    await queue.begin(group)
    group.addOperation(note("a"))
    #expect(!group.isFinished)
    group.isSuspended = false
    await group.finished()
    #expect(journal.entries == ["a"])
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
    await due.finished(opening: held.gate)
    #expect(!blocker.isFinished)
    await group.finished(opening: release)
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
}
