import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Members on a cycle, and those that depend on them, are cancelled with an error that names the cycle.
@Suite(.timeLimit(.minutes(5)))
struct GroupCycleTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func named(_ names: String...) -> [AsyncOperation] { names.map { AsyncOperation().named($0) } }

  /// A group in which nothing moves until `outside` has finished.
  private func waiting(for outside: AsyncOperation, _ members: [Operation]) async -> GroupOperation {
    [outside] ==> members
    let group = GroupOperation(members)
    await queue.begin(group)
    return group
  }

  /// Checks that cycles are the only errors of a group that has finished, and returns their messages.
  private func cycleMessages(of group: GroupOperation) -> Set<String> {
    #expect(group.errors.allSatisfy { OperationError.Code.dependencyCycle ~= $0 })
    return Set(group.errors.map { ($0 as? OperationError)?.message ?? "" })
  }

  enum Shape: CaseIterable, Sendable {
    case outside, withAnotherDependency, ownGroup, nestedMember, startOfANestedGroup, twoGroups
  }

  /// A group with a cycle that contains the operation “one”.
  private func group(_ shape: Shape) -> GroupOperation {
    let operations = named("one", "two", "three")
    let (one, two) = (operations[0], operations[1])
    switch shape {
    case .outside:
      one ==> two ==> one
      return GroupOperation([one])
    case .withAnotherDependency:
      one ==> two ==> operations[2] ==> one
      let group = GroupOperation(operations)
      AsyncOperation() ==> two
      return group
    case .ownGroup:
      let group = GroupOperation([one])
      group ==> one
      return group
    case .nestedMember, .startOfANestedGroup:
      let nested = GroupOperation([one])
      if shape == .nestedMember { nested ==> two ==> one } else { one ==> two ==> nested }
      return GroupOperation([nested, two])
    case .twoGroups:
      let (first, second) = (GroupOperation([one]), GroupOperation([two]))
      two ==> first
      one ==> second
      return GroupOperation([first, second])
    }
  }

  @Test(arguments: Shape.allCases)
  func ofEveryShape(_ shape: Shape) async {
    let group = group(shape)
    await queue.run(settling: [group])
    let messages = cycleMessages(of: group)
    #expect(messages.count == 1 && messages.first?.contains("one") == true)
  }

  @Test(arguments: [2, 1000])
  func aCycleThatIsAddedOneByOne(length: Int) async {
    let (held, operations) = (HeldOperation(), chain((0..<length).map { _ in AsyncOperation() }))
    operations[length - 1] ==> operations[0]
    let group = GroupOperation([held])
    await queue.add(group, until: held.begun)
    for operation in operations { group.addOperation(operation) }
    if length == 2 { #expect(operations[0].isCancelled, "a short cycle is found, and broken, when it is added") }
    await group.finished(opening: held.gate)
    #expect(operations.allSatisfy(\.isFinished) && !cycleMessages(of: group).isEmpty)
  }

  @Test(arguments: [false, true])
  func aCycleThatIsClosedWhileTheGroupRuns(throughANestedGroup: Bool) async {
    let (held, operations) = (HeldOperation(), named("a", "b"))
    held ==> operations[0] ==> operations[1]
    let last = throughANestedGroup ? GroupOperation([operations[1]]).named("nested") : operations[1]
    let group = GroupOperation([held, operations[0], last])
    await queue.add(group, until: held.begun)
    last ==> operations[0]
    await group.finished(opening: held.gate)
    #expect(!cycleMessages(of: group).isEmpty)
  }

  @Test func aCycleThatHasBeenBrokenByCancellingIsNone() async throws {
    let (a, b) = (AsyncOperation(), AsyncOperation())
    a ==> b ==> a
    a.cancel()
    try await queue.run(GroupOperation([a, b]))
  }

  @Test func aPhaseThatWaitsForAllOfTheOneBeforeIsSearchedOnce() async throws {
    // Every member of the second phase waits for every one of the first, through its group: an edge each, not n.
    let first = (0..<5_000).map { _ in AsyncOperation() }
    let second = GroupOperation((0..<5_000).map { _ in AsyncOperation() })
    first ==> second
    try await queue.run(GroupOperation(first + [second]))
  }

  @Test func dependenciesAddedToAGroupInWhichNothingMovesAreSearchedFromThere() async {
    let (outside, another) = (AsyncOperation(), AsyncOperation())
    let members = (0..<5000).map { _ in AsyncOperation() }
    let group = await waiting(for: outside, members)
    for member in members { another ==> member }
    queue.addOperations([outside, another])
    await group.finished()
    #expect(group.isSuccessful)
  }

  @Test func aLongChainIsNoCycleAndItsSearchDoesNotRecurse() async throws {
    try await queue.run(
      GroupOperation(chain((0..<(isThorough ? 50_000 : 10_000)).map { _ in AsyncOperation() }).reversed())
    )
  }

  // MARK: What a cycle means for the others

  @Test func membersOnACycle_areCancelledWithTheirDependentsOnly() async {
    let cycle = named("a", "b", "c")
    cycle[0] ==> cycle[1] ==> cycle[2] ==> cycle[0]
    let (dependent, second) = (NoteOperation("dependent", journal), NoteOperation("second", journal))
    cycle[1] ==> dependent ==> second
    let others = chain((0..<3).map { NoteOperation("\($0)", journal) })
    let group = GroupOperation([dependent, second] + others + cycle).named("make")
    await queue.run(settling: [group])
    #expect(journal.entries == ["0", "1", "2"] && !group.isCancelled)
    #expect((cycle + [dependent, second]).allSatisfy { $0.isCancelled && $0.errors.count == 1 })
    #expect(group.failures.compactMap { $0.path.last }.sorted() == ["a", "b", "c", "dependent", "second"])
    let (messages, names) = (cycleMessages(of: group), ["a → c → b → a", "b → a → c → b", "c → b → a → c"])
    #expect(names.contains { messages == ["Dependency cycle in “make”: \($0)."] }, "\(messages)")
  }

  @Test func underCancelOnFailureItCountsAsAFailure() async {
    let (other, cycle) = (StoppedOperation(reporting: CancellationError()), named("a", "b"))
    cycle[0] ==> cycle[1] ==> cycle[0]
    let group = GroupOperation([other] + cycle)
    group.errorPolicy = .cancelOnFailure
    await queue.run(settling: [group])
    #expect(other.isCancelled)
  }

  @Test func severalCyclesAreEachHandled() async {
    let pairs = (0..<20).map { named("\($0)a", "\($0)b") }
    for pair in pairs { pair[0] ==> pair[1] ==> pair[0] }
    let group = GroupOperation(pairs.flatMap(\.self).shuffled()).named("G")
    await queue.run(settling: [group])
    for (index, pair) in pairs.enumerated() {
      let messages = Set(pair.flatMap(\.errors).map { ($0 as? OperationError)?.message ?? "" })
      let names = ["\(index)a → \(index)b → \(index)a", "\(index)b → \(index)a → \(index)b"]
      #expect(messages.count == 1 && names.contains { messages == ["Dependency cycle in “G”: \($0)."] })
    }
  }

  @Test func aCycleInsideANestedGroupIsThatGroupsOwn() async {
    let cycle = named("a", "b")
    cycle[0] ==> cycle[1] ==> cycle[0]
    let nested = GroupOperation(cycle + [NoteOperation("inside", journal)]).named("nested")
    let (after, outside) = (NoteOperation("after", journal), named("c", "d"))
    outside[0] ==> outside[1] ==> outside[0]
    nested ==> after
    let group = GroupOperation([nested, after] + outside).named("outer")
    await queue.run(settling: [group])
    #expect(journal.entries == ["inside", "after"])
    #expect(!nested.isCancelled && cycle.allSatisfy(\.isCancelled))
    #expect(nested.failures.allSatisfy { "\($0.error)".contains("in “nested”") } && nested.failures.count == 2)
  }

  @Test func aGroupOnACycle_whoseOtherMembersWaitForAnotherCycle() async {
    let (cycle, members) = (named("a", "b"), named("first", "second"))
    let nested = GroupOperation(members).named("nested")
    cycle[0] ==> cycle[1] ==> cycle[0] ==> members[0]
    // Only a member leads from the group to its own cycle.
    nested ==> members[1]
    let group = GroupOperation(cycle + [nested])
    await queue.run(settling: [group])
    #expect(([nested] + cycle + members).allSatisfy { $0.isFinished } && members.allSatisfy(\.isCancelled))
    #expect(cycleMessages(of: group).count == 2)
  }

  @Test func manyNestedGroupsWithACycleEach_areSearchedOnce() async {
    let nested = (0..<500).map { index in
      let cycle = named("\(index)a", "\(index)b")
      cycle[0] ==> cycle[1] ==> cycle[0]
      return GroupOperation(cycle).named("\(index)")
    }
    chain(nested)
    let group = GroupOperation(nested.shuffled())
    await queue.run(settling: [group])
    #expect(nested.allSatisfy { !$0.isCancelled && $0.failures.count == 2 } && cycleMessages(of: group).count == 500)
  }

  @Test func aMemberOfANestedGroupThatDependsOnACycleIsCancelledAlone() async {
    let cycle = named("a", "b")
    cycle[0] ==> cycle[1] ==> cycle[0]
    let dependent = NoteOperation("dependent", journal)
    cycle[0] ==> dependent
    let nested = GroupOperation([dependent, NoteOperation("inside", journal)]).named("nested")
    let group = GroupOperation(cycle + [nested])
    await queue.run(settling: [group])
    #expect(journal.entries == ["inside"])
    #expect(!nested.isCancelled && dependent.errors.contains { OperationError.Code.dependencyCycle ~= $0 })
  }

  @Test func plainMembersOnACycle() async {
    let (a, b, c) = (plain("a", journal), plain("b", journal), plain("c", journal))
    a ==> b ==> a
    b ==> c
    let group = GroupOperation([a, b, c, plain("d", journal)]).named("G")
    await queue.run(settling: [group])
    #expect(journal.entries == ["d"] && cycleMessages(of: group).count == 1)
    #expect(Set(group.failures.map { $0.path.last }) == ["a", "b", "c"])
  }

  /// On Linux, Foundation can deadlock when plain operations on a cycle finish at the same time on several threads.
  @Test(arguments: [true, false]) func plainMembersOnACycleThatAreCancelledTogether_finish(byTheGroup: Bool) async {
    for _ in 0..<(isThorough ? 5_000 : 200) {
      let held = HeldOperation()
      let (a, b) = (plain("a", journal), plain("b", journal))
      a ==> b ==> a
      let group = GroupOperation(byTheGroup ? [a, b] : [held, a, b])
      if byTheGroup {
        group.cancel()
        queue.addOperation(group)
      } else {
        await queue.add(group, until: held.begun)
        held.gate.open()
      }
      await group.finished()
    }
    #expect(journal.entries.isEmpty)
  }

  /// A plain operation whose cancellation takes as long as many other operations.
  private final class SlowlyCancelledOperation: BlockOperation, @unchecked Sendable {
    override func cancel() {
      super.cancel()
      OperationQueue().addOperations((0..<100).map { _ in BlockOperation {} }, waitUntilFinished: true)
    }
  }

  @Test func plainMembersOnACycleThatAreAddedToAGroupThatWaits_neverExecute() async {
    let (outside, waiting, journal) = (AsyncOperation(), NoteOperation("waiting", journal), journal)
    let group = await self.waiting(for: outside, [waiting])
    let (a, b) = (SlowlyCancelledOperation { journal.write("a") }, SlowlyCancelledOperation { journal.write("b") })
    a ==> b ==> a
    _ = await onThread { group.addOperations([a, b]) }
    for operation in [a, b] { await operation.finished() }
    #expect(!waiting.isFinished)
    queue.addOperation(outside)
    await group.finished()
    #expect(journal.entries == ["waiting"] && group.errors.count == 2)
  }

  /// Calls a closure when its priority is read.
  private final class ProbedOperation: AsyncOperation, @unchecked Sendable {
    private let probe: @Sendable () -> Void

    init(_ probe: @escaping @Sendable () -> Void) { self.probe = probe }

    override var queuePriority: QueuePriority {
      get {
        probe()
        return super.queuePriority
      }
      set { super.queuePriority = newValue }
    }
  }

  @Test(arguments: [true, false])
  func membersOnACycleThatAreAddedWhileTheGroupStarts(arePlain: Bool) async {
    let (outside, starting, waiting) = (AsyncOperation(), Gate(), AsyncOperation())
    outside ==> waiting
    let group = GroupOperation([waiting])
    let cycle: [Operation] = arePlain ? [plain("a", journal), plain("b", journal)] : named("a", "b")
    cycle[0] ==> cycle[1] ==> cycle[0]
    let queue = queue
    // The group reads the priority of `last` while it adds the members, and has searched for cycles when it has started.
    let last = ProbedOperation {
      if starting.isOpen { return }
      starting.open()
      queue.addOperation(group)
      var isStarted: Bool { group.engine.state.withLock { $0.schedule.life.isRunning && $0.schedule.additions == 1 } }
      while !isStarted {}
    }
    _ = await onThread { group.addOperations(cycle + [last]) }
    for operation in cycle { await operation.finished() }
    #expect(!waiting.isFinished)
    queue.addOperation(outside)
    await group.finished()
    #expect(group.errors.count == 2 && journal.entries.isEmpty)
  }

  /// Calls a closure when its dependencies are read.
  private final class WatchedOperation: Operation, @unchecked Sendable {
    let probe = Journal<@Sendable () -> Void>()

    override var dependencies: [Operation] {
      for probe in probe.entries { probe() }
      return super.dependencies
    }
  }

  @Test func membersOnACycleThatAreAddedDuringTheSearchAtTheStart() async {
    let (outside, waiting, adding) = (AsyncOperation(), WatchedOperation(), Gate())
    outside ==> waiting
    let group = GroupOperation([waiting])
    let cycle: [Operation] = [plain("a", journal), plain("b", journal)]
    cycle[0] ==> cycle[1] ==> cycle[0]
    waiting.probe.write {
      if adding.isOpen || !group.engine.state.withLock({ $0.schedule.life.isRunning }) { return }
      adding.open()
      group.addOperations(cycle)
    }
    queue.addOperation(group)
    for operation in cycle { await operation.finished() }
    #expect(!waiting.isFinished)
    queue.addOperation(outside)
    await group.finished()
    #expect(group.errors.count == 2 && journal.entries.isEmpty)
  }

  @Test func groupsInQueuesThatWaitForEachOthersMembers() async {
    let (a, b) = (AsyncOperation().named("a"), AsyncOperation().named("b"))
    a ==> b ==> a
    let (first, second) = (GroupOperation([a]).named("first"), GroupOperation([b]).named("second"))
    await queue.run(settling: [first, second])
    #expect((a.errors + b.errors).contains { OperationError.Code.dependencyCycle ~= $0 })
  }
}
