import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Members that wait for each other in a circle end the group with an error that names them.
@Suite(.timeLimit(.minutes(5)))
struct GroupCycleTests {
  private let queue = OperationQueue()

  private func named(_ names: String...) -> [AsyncOperation] { names.map { AsyncOperation().named($0) } }

  private func cycleMessage(of group: GroupOperation) async -> String {
    queue.addOperation(group)
    await group.finished()
    let errors = group.errors.compactMap { $0 as? OperationError }
    #expect(errors.map(\.code) == [.dependencyCycle])
    return errors.first?.message ?? ""
  }

  @Test func amongMembers() async {
    let operations = named("a", "b", "c", "d")
    let (a, b, c) = (operations[0], operations[1], operations[2])
    a ==> b ==> c ==> a
    let message = await cycleMessage(of: GroupOperation(operations).named("Import"))
    #expect(message.contains("“Import”"))
    #expect(
      [
        "“a” waits for “c” waits for “b” waits for “a”", "“b” waits for “a” waits for “c” waits for “b”",
        "“c” waits for “b” waits for “a” waits for “c”",
      ].contains { message.contains($0) },
      "\(message)"
    )
    #expect(operations.filter(\.isFinished).count == 4 && a.isCancelled)
  }

  @Test func throughAnOperationOutside() async {
    let operations = named("member", "outside")
    operations[0] ==> operations[1] ==> operations[0]
    _ = await cycleMessage(of: GroupOperation([operations[0]]))
  }

  @Test func aMemberThatWaitsForItsOwnGroup() async {
    let member = AsyncOperation().named("member")
    let group = GroupOperation([member]).named("group")
    group ==> member
    let message = await cycleMessage(of: group)
    #expect(message.contains("“group” waits for “member” waits for “group”"))
  }

  @Test func throughTheMembersOfANestedGroup() async {
    let (inner, next) = (AsyncOperation().named("inner"), AsyncOperation().named("next"))
    let nested = GroupOperation([inner]).named("nested")
    nested ==> next ==> inner
    let message = await cycleMessage(of: GroupOperation([nested, next]))
    #expect(message.contains("“nested” waits for “inner”") || message.contains("“nested”"))
  }

  @Test func aCircleThatIsAddedWhileTheGroupRuns() async {
    let held = HeldOperation()
    let operations = named("a", "b")
    operations[0] ==> operations[1] ==> operations[0]
    let group = GroupOperation([held])
    queue.addOperation(group)
    await held.begun.opened()
    for operation in operations { group.addOperation(operation) }
    #expect((group.errors.first as? OperationError)?.code == .dependencyCycle, "found on admission")
    held.gate.open()
    await group.finished()
    #expect(operations.filter(\.isFinished).count == 2)
  }

  @Test func aCircleThatIsClosedWhileTheGroupRuns() async {
    let held = HeldOperation()
    let operations = named("a", "b")
    held ==> operations[0] ==> operations[1]
    let group = GroupOperation([held] + operations)
    queue.addOperation(group)
    await held.begun.opened()
    operations[1] ==> operations[0]
    held.gate.open()
    await group.finished()
    #expect(group.errors.compactMap { ($0 as? OperationError)?.code } == [.dependencyCycle])
  }

  @Test func oneThatIsThereBeforeTheStartIsFoundThoughMoreIsAddedAfterwards() async {
    let operations = named("a", "b", "c")
    operations[0] ==> operations[1] ==> operations[2] ==> operations[0]
    let group = GroupOperation(operations)
    AsyncOperation() ==> operations[1]
    _ = await cycleMessage(of: group)
  }

  @Test func aMemberWaitsForItsGroupToStart() async {
    let (a, x) = (AsyncOperation().named("a"), AsyncOperation().named("x"))
    let inner = GroupOperation([a]).named("inner")
    a ==> x ==> inner
    _ = await cycleMessage(of: GroupOperation([inner, x]))
  }

  @Test func acrossTwoGroupsThatWaitForEachOthersMembers() async {
    let (a, b) = (AsyncOperation(), AsyncOperation())
    let (first, second) = (GroupOperation([a]).named("first"), GroupOperation([b]).named("second"))
    b ==> first
    a ==> second
    _ = await cycleMessage(of: GroupOperation([first, second]))
  }

  @Test func aCircleThroughANestedGroupThatIsClosedWhileItRuns() async {
    let (member, x) = (AsyncOperation().named("member"), AsyncOperation().named("x"))
    let held = HeldOperation()
    let nested = GroupOperation([member]).named("nested")
    x ==> member
    held ==> x
    let group = GroupOperation([nested, x, held])
    queue.addOperation(group)
    await held.begun.opened()
    nested ==> x
    held.gate.open()
    await group.finished()
    #expect(group.errors.compactMap { ($0 as? OperationError)?.code } == [.dependencyCycle])
  }

  @Test func aCircleThatHasBeenBrokenByCancellingIsNone() async throws {
    let (a, b) = (AsyncOperation(), AsyncOperation())
    a ==> b ==> a
    a.cancel()
    try await queue.run(GroupOperation([a, b]))
  }

  @Test func aLongCircleThatIsAddedOneByOne() async {
    let operations = (0..<3000).map { AsyncOperation().named("\($0)") }
    for (first, second) in zip(operations, operations.dropFirst()) { first ==> second }
    operations[2999] ==> operations[0]
    let held = HeldOperation()
    let group = GroupOperation([held])
    queue.addOperation(group)
    await held.begun.opened()
    for operation in operations { group.addOperation(operation) }
    held.gate.open()
    await group.finished()
    #expect(group.errors.compactMap { ($0 as? OperationError)?.code } == [.dependencyCycle])
  }

  @Test func aPhaseThatWaitsForAllOfTheOneBeforeIsSearchedOnce() async throws {
    // Every member of the second phase waits for every one of the first, through its group: an edge each, not n.
    let first = (0..<20_000).map { _ in AsyncOperation() }
    let second = GroupOperation((0..<20_000).map { _ in AsyncOperation() })
    first ==> second
    try await queue.run(GroupOperation(first + [second]))
  }

  @Test func dependenciesAddedToAGroupInWhichNothingMovesAreSearchedFromThere() async {
    let outside = AsyncOperation()
    let members = (0..<5000).map { _ in AsyncOperation() }
    [outside] ==> members
    let group = GroupOperation(members)
    let began = Gate()
    group.addObserver(OperationObserver(didStart: { _ in began.open() }))
    queue.addOperation(group)
    await began.opened()
    let another = AsyncOperation()
    for member in members { another ==> member }
    queue.addOperations([outside, another])
    await group.finished()
    #expect(group.isSuccessful)
  }

  @Test func aLongChainIsNoCircleAndItsSearchDoesNotRecurse() async throws {
    let operations = (0..<50_000).map { _ in AsyncOperation() }
    for (first, second) in zip(operations, operations.dropFirst()) { first ==> second }
    try await queue.run(GroupOperation(operations.reversed()))
  }
}
