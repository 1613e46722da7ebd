import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Members on a cycle, and those that depend on them, are cancelled with an error that names the cycle.
@Suite(.timeLimit(.minutes(5)))
struct GroupCycleTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func named(_ names: String...) -> [AsyncOperation] { names.map { AsyncOperation().named($0) } }

  private func run(_ group: GroupOperation) async {
    await queue.run(settling: [group])
  }

  /// A group in which nothing moves until `outside` has finished.
  private func waiting(for outside: AsyncOperation, _ members: [Operation]) async -> GroupOperation {
    let (group, began) = (GroupOperation(members), Gate())
    [outside] ==> members
    group.addObserver(OperationObserver(didStart: { _ in began.open() }))
    await queue.add(group, until: began)
    return group
  }

  private func cycleMessage(of group: GroupOperation) async -> String {
    await run(group)
    let errors = group.errors.compactMap { $0 as? OperationError }
    #expect(errors.count == group.errors.count && errors.allSatisfy { $0.code == .dependencyCycle })
    #expect(Set(errors.map(\.message)).count == 1, "the same cycle for all")
    return errors.first?.message ?? ""
  }

  @Test func amongMembers() async {
    let operations = named("a", "b", "c", "d")
    let (a, b, c) = (operations[0], operations[1], operations[2])
    a ==> b ==> c ==> a
    let message = await cycleMessage(of: GroupOperation(operations).named("Import"))
    let cycles = ["a → c → b → a", "b → a → c → b", "c → b → a → c"]
    #expect(cycles.contains { message == "Dependency cycle in “Import”: \($0)." }, "\(message)")
    #expect(a.isCancelled && b.isCancelled && c.isCancelled && !operations[3].isCancelled)
    #expect(operations.filter(\.isFinished).count == 4)
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
    #expect(await cycleMessage(of: group(shape)).contains("one"))
  }

  @Test func aCycleThatIsAddedWhileTheGroupRuns() async {
    let held = HeldOperation()
    let operations = named("a", "b")
    operations[0] ==> operations[1] ==> operations[0]
    let group = GroupOperation([held])
    await queue.add(group, until: held.begun)
    for operation in operations { group.addOperation(operation) }
    #expect(operations[0].isCancelled, "found when it is added, and broken by that")
    held.gate.open()
    await group.finished()
    #expect(operations.filter(\.isFinished).count == 2)
  }

  @Test(arguments: [false, true])
  func aCycleThatIsClosedWhileTheGroupRuns(throughANestedGroup: Bool) async {
    let (held, operations) = (HeldOperation(), named("a", "b"))
    held ==> operations[0] ==> operations[1]
    let last = throughANestedGroup ? GroupOperation([operations[1]]).named("nested") : operations[1]
    let group = GroupOperation([held, operations[0], last])
    await queue.add(group, until: held.begun)
    last ==> operations[0]
    held.gate.open()
    await group.finished()
    #expect(Set(group.errors.compactMap { ($0 as? OperationError)?.code }) == [.dependencyCycle])
  }

  @Test func aCycleThatHasBeenBrokenByCancellingIsNone() async throws {
    let (a, b) = (AsyncOperation(), AsyncOperation())
    a ==> b ==> a
    a.cancel()
    try await queue.run(GroupOperation([a, b]))
  }

  @Test func aLongCycleThatIsAddedOneByOne() async {
    let operations = (0..<1000).map { AsyncOperation().named("\($0)") }
    for (first, second) in zip(operations, operations.dropFirst()) { first ==> second }
    operations[999] ==> operations[0]
    let held = HeldOperation()
    let group = GroupOperation([held])
    await queue.add(group, until: held.begun)
    for operation in operations { group.addOperation(operation) }
    held.gate.open()
    await group.finished()
    #expect(Set(group.errors.compactMap { ($0 as? OperationError)?.code }) == [.dependencyCycle])
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
    let operations = (0..<(isThorough ? 50_000 : 20_000)).map { _ in AsyncOperation() }
    for (first, second) in zip(operations, operations.dropFirst()) { first ==> second }
    try await queue.run(GroupOperation(operations.reversed()))
  }

  // MARK: What a cycle means for the others

  @Test func theOthersRun() async {
    let cycle = named("a", "b")
    cycle[0] ==> cycle[1] ==> cycle[0]
    let (dependent, second) = (NoteOperation("dependent", journal), NoteOperation("second", journal))
    cycle[1] ==> dependent ==> second
    let others = (0..<3).map { NoteOperation("\($0)", journal) }
    others[0] ==> others[1] ==> others[2]
    let group = GroupOperation([dependent, second] + others + cycle).named("make")
    await run(group)
    #expect(journal.entries == ["0", "1", "2"])
    #expect(!group.isCancelled)
    for operation in cycle + [dependent, second] {
      let errors = operation.errors.compactMap { $0 as? OperationError }
      #expect(operation.isCancelled && errors.map(\.code) == [.dependencyCycle])
      #expect(errors.first?.message.hasPrefix("Dependency cycle in “make”: ") == true)
    }
    #expect(Set(group.failures.map { $0.path.last }) == ["a", "b", "dependent", "second"])
  }

  @Test func underCancelOnFailureItCountsAsAFailure() async {
    let held = HeldOperation()
    let cycle = named("a", "b")
    cycle[0] ==> cycle[1] ==> cycle[0]
    let group = GroupOperation([held] + cycle)
    group.errorPolicy = .cancelOnFailure
    held.addObserver(OperationObserver(didCancel: { _ in held.gate.open() }))
    await run(group)
    #expect(held.isCancelled)
  }

  @Test func severalCyclesAreEachHandled() async {
    let pairs = (0..<20).map { named("\($0)a", "\($0)b") }
    for pair in pairs { pair[0] ==> pair[1] ==> pair[0] }
    let group = GroupOperation(pairs.flatMap(\.self).shuffled()).named("G")
    await run(group)
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
    await run(group)
    #expect(journal.entries == ["inside", "after"])
    #expect(!nested.isCancelled && cycle.allSatisfy(\.isCancelled))
    #expect(nested.failures.allSatisfy { "\($0.error)".contains("in “nested”") } && nested.failures.count == 2)
  }

  @Test func aMemberOfANestedGroupThatDependsOnACycleIsCancelledAlone() async {
    let cycle = named("a", "b")
    cycle[0] ==> cycle[1] ==> cycle[0]
    let dependent = NoteOperation("dependent", journal)
    cycle[0] ==> dependent
    let nested = GroupOperation([dependent, NoteOperation("inside", journal)]).named("nested")
    let group = GroupOperation(cycle + [nested])
    await run(group)
    #expect(journal.entries == ["inside"])
    #expect(!nested.isCancelled && OperationError.Code.dependencyCycle ~= dependent.errors[0])
  }

  @Test func plainMembersOnACycle() async {
    let (a, b, c) = (plain("a", journal), plain("b", journal), plain("c", journal))
    a ==> b ==> a
    b ==> c
    let group = GroupOperation([a, b, c, plain("d", journal)]).named("G")
    await run(group)
    #expect(journal.entries == ["d"])
    #expect(Set(group.failures.map { $0.path.last }) == ["a", "b", "c"])
    #expect(group.errors.allSatisfy { OperationError.Code.dependencyCycle ~= $0 })
  }

  @Test func plainMembersOnACycleThatAreAddedToAGroupThatWaits() async {
    let (outside, waiting) = (AsyncOperation(), NoteOperation("waiting", journal))
    let group = await self.waiting(for: outside, [waiting])
    let (a, b) = (plain("a", journal), plain("b", journal))
    a ==> b ==> a
    group.addOperations([a, b])
    await a.finished()
    await b.finished()
    #expect(!waiting.isFinished)
    queue.addOperation(outside)
    await group.finished()
    #expect(journal.entries == ["waiting"] && group.errors.count == 2)
  }

  /// On Linux, Foundation can deadlock when plain operations on a cycle finish at the same time on several threads.
  @Test(arguments: [true, false]) func plainMembersOnACycleThatAreCancelledTogether_finish(byTheGroup: Bool) async {
    for _ in 0..<(isThorough ? 20_000 : 2_000) {
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

  /// A plain operation whose cancellation lasts until the given operation has finished.
  private final class SlowlyCancelledOperation: BlockOperation, @unchecked Sendable {
    weak var last: Operation?

    override func cancel() {
      super.cancel()
      last?.waitUntilFinished()
    }
  }

  @Test func aPlainMemberOnACycleIsNotExecutedWhenTheOthersHaveBeenCancelled() async {
    let outside = AsyncOperation()
    let group = await waiting(for: outside, [NoteOperation("waiting", journal)])
    let journal = journal
    let (a, b) = (SlowlyCancelledOperation { journal.write("a") }, SlowlyCancelledOperation { journal.write("b") })
    (a.last, b.last) = (b, a)
    a ==> b ==> a
    _ = await onThread { group.addOperations([a, b]) }
    queue.addOperation(outside)
    await group.finished()
    #expect(journal.entries == ["waiting"] && group.errors.count == 2)
  }

  /// Calls a closure when its readiness is read.
  private final class ProbedOperation: Operation, @unchecked Sendable {
    private let probe: @Sendable () -> Void

    init(_ probe: @escaping @Sendable () -> Void) { self.probe = probe }

    override var isReady: Bool {
      probe()
      return super.isReady
    }
  }

  @Test(arguments: [true, false])
  func membersOnACycleThatAreAddedWhileTheGroupStarts(arePlain: Bool) async {
    let (outside, starting, started) = (AsyncOperation(), Gate(), Gate())
    let waiting = ProbedOperation { if starting.isOpen { started.open() } }
    outside ==> waiting
    let group = GroupOperation([waiting])
    let cycle: [Operation] = arePlain ? [plain("a", journal), plain("b", journal)] : named("a", "b")
    cycle[0] ==> cycle[1] ==> cycle[0]
    let queue = queue
    // The group reads the readiness of `last` while it adds the members, and that of `waiting` when it starts, after
    // its search for cycles.
    let last = ProbedOperation {
      if starting.isOpen { return }
      starting.open()
      queue.addOperation(group)
      started.pass()
    }
    outside ==> last
    _ = await onThread { group.addOperations(cycle + [last]) }
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
    queue.addOperations([first, second])
    await first.finished()
    await second.finished()
    #expect((a.errors + b.errors).contains { OperationError.Code.dependencyCycle ~= $0 })
  }
}
