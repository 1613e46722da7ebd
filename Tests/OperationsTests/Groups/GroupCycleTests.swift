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

  private func cycle(_ names: String...) -> [AsyncOperation] {
    let operations = names.map { AsyncOperation().named($0) }
    chain(operations + [operations[0]])
    return operations
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
    let group = await queue.add(GroupOperation([held]), until: held.begun)
    for operation in operations { group.addOperation(operation) }
    await group.finished(opening: held.gate)
    #expect(operations.allSatisfy(\.isFinished) && !cycleMessages(of: group).isEmpty)
  }

  @Test(arguments: [false, true])
  func aCycleThatIsClosedWhileTheGroupRuns(throughANestedGroup: Bool) async {
    let (held, operations) = (HeldOperation(), named("a", "b"))
    held ==> operations[0] ==> operations[1]
    let last = throughANestedGroup ? GroupOperation([operations[1]]).named("nested") : operations[1]
    let group = await queue.add(GroupOperation([held, operations[0], last]), until: held.begun)
    last ==> operations[0]
    await group.finished(opening: held.gate)
    #expect(!cycleMessages(of: group).isEmpty)
  }

  /// It is too long for the search at once, and no end of a member starts another one.
  @Test func aLongCycleThatIsClosedWhileNoMemberRuns() async {
    let operations = chain((0..<200).map { _ in AsyncOperation() })
    AsyncOperation() ==> operations[0]
    let group = GroupOperation(operations)
    await queue.begin(group)
    await poll { group.engine.state.withLock { $0.schedule.additions == 0 } }
    operations[199] ==> operations[0]
    await group.finished()
    #expect(operations.allSatisfy(\.isCancelled) && !cycleMessages(of: group).isEmpty)
  }

  @Test func aCycleThatHasBeenBrokenByCancellingIsNone() async throws {
    let (a, b) = (AsyncOperation(), AsyncOperation())
    a ==> b ==> a
    a.cancel()
    try await queue.run(GroupOperation([a, b]))
  }

  @Test func aLongChainIsNoCycleAndItsSearchDoesNotRecurse() async throws {
    let members = chain((0..<(isThorough ? 50_000 : 10_000)).map { _ in AsyncOperation() })
    try await queue.run(GroupOperation(members.reversed()))
  }

  // MARK: What a cycle means for the others

  @Test(arguments: [false, true]) func membersOnACycle_areCancelledWithTheirDependentsOnly(arePlain: Bool) async {
    func member(_ name: String) -> Operation { arePlain ? plain(name, journal) : NoteOperation(name, journal) }
    let (cycle, dependents) = (["a", "b", "c"].map(member), ["dependent", "second"].map(member))
    chain(cycle + [cycle[0]])
    chain([cycle[1]] + dependents)
    let others = chain(["0", "1", "2"].map(member))
    let group = GroupOperation(dependents + others + cycle).named("make")
    await queue.run(settling: [group])
    #expect(journal.entries == ["0", "1", "2"] && !group.isCancelled)
    #expect((cycle + dependents).allSatisfy { $0.isCancelled })
    #expect(group.failures.compactMap { $0.path.last }.sorted() == ["a", "b", "c", "dependent", "second"])
    let (messages, names) = (cycleMessages(of: group), ["a → c → b → a", "b → a → c → b", "c → b → a → c"])
    #expect(names.contains { messages == ["Dependency cycle in “make”: \($0)."] }, "\(messages)")
  }

  @Test func underCancelOnFailureItCountsAsAFailure() async {
    let other = StoppedOperation(reporting: CancellationError())
    await queue.run(settling: [GroupOperation([other] + cycle("a", "b"), errorPolicy: .cancelOnFailure)])
    #expect(other.isCancelled)
  }

  @Test func aCycleInsideANestedGroupIsThatGroupsOwn_andADependentOfAnotherCycleIsCancelledAlone() async {
    let (inner, outer, after) = (cycle("a", "b"), cycle("c", "d"), NoteOperation("after", journal))
    let dependent = NoteOperation("dependent", journal)
    outer[0] ==> dependent
    let nested = GroupOperation(inner + [dependent, NoteOperation("inside", journal)]).named("nested")
    nested ==> after
    await queue.run(settling: [GroupOperation([nested, after] + outer)])
    #expect(journal.entries == ["inside", "after"])
    #expect(!nested.isCancelled && inner.allSatisfy(\.isCancelled) && nested.failures.count == 3)
    #expect(inner.flatMap(\.errors).allSatisfy { "\($0)".contains("in “nested”") })
    #expect(dependent.errors.contains { OperationError.Code.dependencyCycle ~= $0 })
  }

  @Test func aGroupOnACycle_whoseOtherMembersWaitForAnotherCycle() async {
    let (cycle, members) = (cycle("a", "b"), named("first", "second"))
    let nested = GroupOperation(members).named("nested")
    cycle[0] ==> members[0]
    // Only a member leads from the group to its own cycle.
    nested ==> members[1]
    let group = GroupOperation(cycle + [nested])
    await queue.run(settling: [group])
    #expect(([nested] + cycle + members).allSatisfy { $0.isFinished } && members.allSatisfy(\.isCancelled))
    #expect(cycleMessages(of: group).count == 2)
  }

  /// On Linux, Foundation can deadlock when plain operations on a cycle finish at the same time on several threads.
  @Test(arguments: [true, false]) func plainMembersOnACycleThatAreCancelledTogether_finish(byTheGroup: Bool) async {
    for _ in 0..<(isThorough ? 5_000 : 200) {
      let (a, b) = (plain("a", journal), plain("b", journal))
      a ==> b ==> a
      let group = GroupOperation(byTheGroup ? [a, b] : [AsyncOperation(), a, b])
      if byTheGroup { group.cancel() }
      await queue.run(settling: [group])
    }
    #expect(journal.entries.isEmpty)
  }

  /// Expects that members on a cycle are cancelled, although their group still waits for an operation.
  private func expectEnd(of cycle: [Operation], in group: GroupOperation, waitingFor outside: AsyncOperation) async {
    for operation in cycle { await operation.finished() }
    #expect(!group.isFinished)
    queue.addOperation(outside)
    await group.finished()
    #expect(group.errors.count == 2)
  }

  @Test func plainMembersOnACycleThatAreAddedToAGroupThatWaits_neverExecute() async {
    /// A plain operation whose cancellation takes as long as many other operations.
    final class SlowlyCancelledOperation: BlockOperation, @unchecked Sendable {
      override func cancel() {
        super.cancel()
        OperationQueue().addOperations((0..<100).map { _ in BlockOperation {} }, waitUntilFinished: true)
      }
    }
    let (outside, journal) = (AsyncOperation(), journal)
    let group = GroupOperation([outside ==> NoteOperation("waiting", journal)])
    await queue.begin(group)
    let (a, b) = (SlowlyCancelledOperation { journal.write("a") }, SlowlyCancelledOperation { journal.write("b") })
    a ==> b ==> a
    _ = await onThread { group.addOperations([a, b]) }
    await expectEnd(of: [a, b], in: group, waitingFor: outside)
    #expect(journal.entries == ["waiting"])
  }

  @Test(arguments: [true, false])
  func membersOnACycleThatAreAddedWhileTheGroupStarts(arePlain: Bool) async {
    let (outside, starting, last, queue) = (AsyncOperation(), Gate(), PriorityProbe(), queue)
    let group = GroupOperation([outside ==> AsyncOperation()])
    let cycle: [Operation] = arePlain ? [plain("a", journal), plain("b", journal)] : named("a", "b")
    cycle[0] ==> cycle[1] ==> cycle[0]
    // The group reads the priority of `last` while it adds the members, and has searched for cycles when it has started.
    last.whenRead {
      if group.operations.count < 4 || starting.isOpen { return }
      starting.open()
      queue.addOperation(group)
      var isStarted: Bool { group.engine.state.withLock { $0.schedule.life.isUnderway && $0.schedule.additions == 1 } }
      while !isStarted {}
    }
    _ = await onThread { group.addOperations(cycle + [last]) }
    await expectEnd(of: cycle, in: group, waitingFor: outside)
    #expect(starting.isOpen && journal.entries.isEmpty)
  }

  @Test func membersOnACycleThatAreAddedDuringTheSearchAtTheStart() async {
    /// Calls closures when its dependencies are read.
    final class WatchedOperation: Operation, @unchecked Sendable {
      let probe = Journal<@Sendable () -> Void>()

      override var dependencies: [Operation] {
        for probe in probe.entries { probe() }
        return super.dependencies
      }
    }
    let (outside, waiting, adding) = (AsyncOperation(), WatchedOperation(), Gate())
    outside ==> waiting
    let group = GroupOperation([waiting])
    let cycle: [Operation] = [plain("a", journal), plain("b", journal)]
    cycle[0] ==> cycle[1] ==> cycle[0]
    waiting.probe.write {
      if adding.isOpen || !group.engine.state.withLock({ $0.schedule.life.isUnderway }) { return }
      adding.open()
      group.addOperations(cycle)
    }
    queue.addOperation(group)
    await expectEnd(of: cycle, in: group, waitingFor: outside)
    #expect(journal.entries.isEmpty)
  }

  @Test func groupsInQueuesThatWaitForEachOthersMembers() async {
    let cycle = cycle("a", "b")
    await queue.run(settling: cycle.map { GroupOperation([$0]) })
    #expect(cycle.flatMap(\.errors).contains { OperationError.Code.dependencyCycle ~= $0 })
  }
}
