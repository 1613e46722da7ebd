import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct GroupOperationTests: NotingSuite {
  let journal = Journal<String>()
  private let queue = OperationQueue()

  // MARK: What is in it

  @Test func theBuilderTakesInBothSidesOfEveryOperatorInside_eachOnce() {
    let (a, b, c, d) = (note("a"), plain("b", journal), plain("c", journal), note("d"))
    let group = GroupOperation {
      let last = [a, b] ==> c
      let nested = GroupOperation("nested") { note("e") ==> note("f") }
      d.waits(for: last)
      nested
      [a, b]
      for operation in [b, c] { operation }
      if d.dependencies.isEmpty { note("never") } else { d }
    }
    #expect(group.operations.map(\.displayName) == ["a", "b", "c", "d", "nested"])
  }

  @Test func membersOfAnInnerGroupThatAreJoinedInBraces_stayWhereTheyAre() async throws {
    let (a, b, c, plain) = (note("a"), note("b"), note("c"), plain("plain", journal))
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

  // MARK: Nested braces

  @Test(arguments: [false, true]) func anOperation_belongsToTheOutermostGroupThatNamesIt(afterwards: Bool) async throws
  {
    let (a, b, c, d, block) = (note("a"), note("b"), note("c"), note("d"), plain("plain", journal))
    var (inner, innermost) = (GroupOperation(), GroupOperation())
    let outer = GroupOperation("outer", maxConcurrentOperationCount: 1) {
      if !afterwards { a }
      let group = GroupOperation("inner") {
        let group = GroupOperation("innermost") {
          a ==> block ==> b
          c
          d
        }
        (inner, innermost) = (inner, group)
        group
        b
      }
      inner = group
      group
      if afterwards { a }
      c ==> plain("f", journal) ==> note("e")
    }
    #expect(Set(outer.operations.map(\.displayName)) == ["a", "c", "e", "f", "inner"])
    #expect(Set(inner.operations.map(\.displayName)) == ["plain", "b", "innermost"])
    #expect(innermost.operations == [d])
    #expect([outer, inner, innermost].map(\.progress.totalUnitCount) == [5, 3, 1])
    try await queue.run(outer)
    #expect(Set(journal.entries) == ["a", "b", "c", "d", "e", "f", "plain"])
  }

  @Test func whatAnOperationWaitsFor_goesWithIt_underTheLimitOfItsGroup() async throws {
    let running = Locked((now: 0, most: 0))
    let pages = (0..<8).map { _ in
      TaskOperation {
        running.withLock { ($0.now, $0.most) = ($0.now + 1, max($0.most, $0.now + 1)) }
        for _ in 0..<20 { await Task.yield() }
        return running.withLock {
          $0.now -= 1
          return $0.now
        }
      }
    }
    pages[0].cancel()
    let index = collect(pages, input: .optional).map { $0.count }.named("index").exclusive("index")
    let crawl = GroupOperation("crawl", maxConcurrentOperationCount: 1) {
      GroupOperation("images") { index ==> note("image") }
      index
    }
    #expect(crawl.operations.count == 11)
    try await queue.run(crawl)
    #expect(running.withLock { $0.most } == 1 && journal.entries == ["image"])
    #expect(try index.result?.get() == 7)
  }

  @Test func aGroupThatHasBeenStartedInsideBraces_keepsItsMembers() async throws {
    let (a, b) = (note("a"), note("b"))
    let outer = GroupOperation {
      let inner = GroupOperation("inner") { a ==> b }.started()
      inner.finish()
      b ==> note("c")
    }
    #expect(outer.operations.map(\.displayName) == ["c"])
    try await queue.run(outer)
    #expect(journal.entries == ["a", "b", "c"])
  }

  @Test func theBuilderLeavesWhatIsElsewhere_andPlainDependenciesThatWereAttachedOutside() async {
    let (suspended, outside, inside) = (OperationQueue.suspended(), note("outside"), note("inside"))
    let (queued, free) = (plain("queued", journal), plain("free", journal))
    [outside, queued, free] ==> inside
    suspended.addOperations([outside, queued])
    let (group, graph) = (GroupOperation { inside }, GroupOperation())
    #expect(group.operations == [inside])
    graph.addGraph(endingIn: free ==> note("last"))
    #expect(graph.operations.map(\.displayName) == ["free", "last"])
    queue.addOperations([group, graph])
    suspended.isSuspended = false
    await group.finished()
    await graph.finished()
    #expect(Set(journal.entries) == ["outside", "queued", "free", "inside", "last"])
  }

  @Test(arguments: [false, true])
  func aGroupThatIsCancelledWhileAGraphIsAdded_leavesAloneWhatAnotherGroupHasTaken(isPlain: Bool) async {
    let (held, probe, last) = (HeldOperation(), PriorityProbe(), note("last"))
    // A claim would give `taken` an index of the first group.
    let (group, other) = (GroupOperation((0..<5).map { _ in AsyncOperation() }), GroupOperation([held]))
    let taken = isPlain ? BlockOperation {} : note("taken")
    await queue.add(other, until: held.begun)
    probe ==> taken ==> last
    probe.whenRead {
      guard group.operations.contains(taken), !other.operations.contains(taken) else { return }
      other.addOperation(taken)
      group.cancel()
    }
    group.addGraph(endingIn: last)
    probe.whenRead {}
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
      await group.ended()
      #expect(group.errors.count == 1_002 && journal.entries.isEmpty)
    }
  }

  // MARK: Adding

  @Test func aMemberMayAddMembersAndSoMayItsDescendants() async throws {
    let (outer, depths) = (GroupOperation(), Journal<Int>())
    @Sendable func add(_ depth: Int, to group: GroupOperation) {
      group.addOperation(
        ResultOperation {
          depths.write(depth)
          guard depth > 0 else { return }
          let inner = GroupOperation()
          for place in [group, group, outer, inner] { add(depth - 1, to: place) }
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
    last.addObserver(didFinish: { _ in group.addOperation(note("one more")) })
    try await queue.run(group)
    #expect(journal.entries == ["last", "one more"])
  }

  @Test func addedWhileAGroupRequestsItsKeys_everyMemberStarts() async {
    for _ in 0..<(isThorough ? 400 : 30) {
      let group = GroupOperation((0..<300).map { _ in AsyncOperation() })
      group.addOperation(AsyncOperation().exclusive("key", in: ExclusivityDomain()))
      group.staysOpen = true
      await onThreads(2) { thread in
        if thread == 0 { return queue.addOperation(group) }
        for _ in 0..<300 { group.addOperation(AsyncOperation()) }
      }
      await group.ended()
    }
  }

  @Test func addedToAFinishedGroup_operationsOfEveryKindFinishWithAnErrorThatNamesBoth() async {
    let (held, group) = (await queue.holding(), GroupOperation([AsyncOperation()]).named("g"))
    await queue.run(settling: [group])
    let (late, list, inner) = (note("late"), ["a", "b", "c"].map { note($0) }, note("inner"))
    let (graph, plains) = (["d", "e"].map { note($0) }, ["ready", "waiting"].map { plain($0, journal) })
    list[2] ==> list[0]
    held ==> [graph[0], plains[1]]
    graph[0] ==> graph[1]
    group.addOperation(late)
    group.addOperations(list + [GroupOperation([inner])])
    group.addOperations(plains)
    // What runs elsewhere is left alone.
    for last in [held, graph[1]] { group.addGraph(endingIn: last) }
    for operation in [late] + list + graph {
      await operation.finished()
      #expect(operation.isCancelled && operation.errors as? [OperationError] == [OperationError(.shutDown, "")])
    }
    for operation in [inner] + plains {
      await operation.finished()
      #expect(operation.isCancelled)
    }
    let message = "“late” did not run because “g” had finished. Add it to a new group."
    #expect((late.errors.first as? OperationError)?.message == message)
    #expect(inner.errors.isEmpty && group.isSuccessful && group.operations.isEmpty)
    #expect(journal.entries.isEmpty && held.isExecuting && !held.isCancelled)
    await held.finished(opening: held.gate)
  }

  // MARK: How they run

  @Test func aLimitOfZeroStartsNothingUntilItIsRaised() async {
    let group = GroupOperation([note("a"), note("b")], maxConcurrentOperationCount: 0)
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
    await group.ended()
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
    if madeReadyByIt { await OperationQueue().begin(held) }
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
    let group = GroupOperation(maxConcurrentOperationCount: 1) { first ==> ResultOperation { release.open() } }
    await queue.run(settling: [group])
  }
}
