import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// Members that exclude each other, and groups that hold a key.
@Suite(.timeLimit(.minutes(5)))
struct ExclusiveGroupTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private var isUnused: Bool { domain.state.withLock { $0.table.isEmpty } }

  @Test func membersAskOnceTheGroupHasBegun() async {
    let group = GroupOperation()
    let (own, foreign) = (NoteOperation("own", journal), plain("foreign", journal))
    #expect(group.addOperation(own, exclusive: "a", policy: .drop, in: domain))
    #expect(group.addOperation(foreign, exclusive: "a", in: domain))
    #expect(isUnused)
    let outsider = NoteOperation("outsider", journal)
    queue.addOperation(outsider, exclusive: "a", policy: .drop, in: domain)
    await outsider.finished()
    queue.addOperation(group)
    await group.finished()
    #expect(journal.entries == ["outsider", "own", "foreign"] && group.isSuccessful)
  }

  @Test func membersExecuteOneAtATimeInTheOrderTheyWereAdded() async {
    let group = GroupOperation()
    let members: [Operation] = (0..<100).map {
      $0.isMultiple(of: 5) ? plain("\($0)", journal) : NoteOperation("\($0)", journal)
    }
    for member in members { group.addOperation(member, exclusive: "a", in: domain) }
    queue.addOperation(group)
    await group.finished()
    #expect(journal.entries == (0..<100).map(String.init))
  }

  @Test func aMemberThatWaitsForAKeyTakesNoSlot() async {
    let holder = HeldOperation()
    queue.addOperation(holder, exclusive: "a", in: domain)
    let group = GroupOperation()
    group.maxConcurrentOperationCount = 1
    let next = NoteOperation("next", journal)
    group.addOperation(NoteOperation("waiting", journal), exclusive: "a", in: domain)
    group.addOperation(next)
    queue.addOperation(group)
    await next.finished()
    holder.gate.open()
    await group.finished()
    #expect(journal.entries == ["next", "waiting"])
  }

  @Test func aMemberOfARunningGroupIsDroppedAtOnceAndItsErrorIsTheGroups() async {
    let group = GroupOperation("group") {}
    let holder = HeldOperation().named("holder")
    group.addOperation(holder, exclusive: "a", in: domain)
    queue.addOperation(group)
    await holder.begun.opened()
    let dropped: [Operation] = [NoteOperation("own", journal), plain("foreign", journal)]
    for operation in dropped { #expect(!group.addOperation(operation, exclusive: "a", policy: .drop, in: domain)) }
    holder.gate.open()
    await group.finished()
    #expect(dropped.allSatisfy { $0.isFinished && $0.isCancelled } && journal.entries.isEmpty)
    #expect(group.failures.map(\.path) == [["group", "own"]] && OperationError.Code.excluded ~= group.errors[0])
  }

  @Test func aPlainMemberThatIsReplacedFinishesBeforeTheHolder() async {
    let holder = HeldOperation()
    queue.addOperation(holder, exclusive: "a", in: domain)
    await holder.begun.opened()
    let member = plain("member", journal)
    let group = GroupOperation()
    group.addOperation(member, exclusive: "a", in: domain)
    queue.addOperation(group)
    while domain.waiting(for: "a").isEmpty { await Task.yield() }
    let last = NoteOperation("last", journal)
    queue.addOperation(last, exclusive: "a", policy: .replace, in: domain)
    await group.finished()
    #expect(member.isCancelled && !holder.isFinished)
    holder.gate.open()
    await last.finished()
    #expect(journal.entries == ["last"])
  }

  // MARK: Groups that hold a key

  @Test func whatIsInsideAHolderIsLetInAtAnyDepthAndSiblingsExcludeEachOther() async {
    let deepest = NoteOperation("deepest", journal)
    let inner = GroupOperation("inner") {}
    inner.addOperation(deepest, exclusive: "a", in: domain)
    let middle = GroupOperation("middle") { inner }
    let (first, second) = (HeldOperation().named("first"), HeldOperation().named("second"))
    let outer = GroupOperation("outer") { middle }
    outer.addOperation(first, exclusive: "a", in: domain)
    outer.addOperation(second, exclusive: "a", in: domain)
    queue.addOperation(outer, exclusive: "a", in: domain)
    let outsider = NoteOperation("outsider", journal)
    queue.addOperation(outsider, exclusive: "a", in: domain)
    await first.begun.opened()
    #expect(domain.holder(of: "a") == "outer")
    #expect(!second.begun.isOpen && domain.waiting(for: "a").contains("outsider"))
    first.gate.open()
    await second.begun.opened()
    second.gate.open()
    await outsider.finished()
    #expect(journal.entries == ["deepest", "outsider"] && isUnused)
  }

  @Test func aPlainMemberOfAHolderIsLetIn() async {
    let group = GroupOperation()
    group.addOperation(plain("member", journal), exclusive: "a", in: domain)
    queue.addOperation(group, exclusive: "a", in: domain)
    await group.finished()
    #expect(journal.entries == ["member"])
  }

  @Test func whatARetryOrAFlatMapRunsInsideAHolderIsLetIn() async throws {
    let domain = domain
    @Sendable func exclusive(_ name: String) -> ResultOperation<String> {
      let operation = ResultOperation { name }
      let group = GroupOperation {}
      group.addOperation(operation, exclusive: "a", in: domain)
      return zip(operation, TaskOperation { try await group.completed() }.waits(for: group)).map(\.0)
    }
    let retry = RetryOperation(attempts: 2) { attempt -> ResultOperation<String> in
      if attempt == 1 { return ResultOperation { () throws -> String in throw TestError("once more") } }
      return ResultOperation { 0 }.flatMap { _ in exclusive("let in") }
    }
    #expect(try await queue.run(retry, exclusive: "a", in: domain) == "let in")
  }

  @Test func aMemberGoesBeforeThoseWhoWaitForItsGroup() async {
    let member = NoteOperation("member", journal)
    let begun = HeldOperation()
    let group = GroupOperation([begun])
    queue.addOperation(group, exclusive: "a", in: domain)
    await begun.begun.opened()
    let outsider = NoteOperation("outsider", journal)
    queue.addOperation(outsider, exclusive: "a", "b", in: domain)
    group.addOperation(member, exclusive: "b", in: domain)
    await member.finished()
    begun.gate.open()
    await outsider.finished()
    #expect(journal.entries == ["member", "outsider"])
  }

  @Test func groupsWhoseMembersWouldWaitForEachOtherForEverAreToldSo() async throws {
    let begun = [HeldOperation(), HeldOperation()]
    let groups = zip(["A", "B"], begun).map { name, held in GroupOperation(name) { held } }
    for (group, key) in zip(groups, ["a", "b"]) {
      queue.addOperation(group, exclusive: ExclusivityKey(key), in: domain)
    }
    for held in begun { await held.begun.opened() }
    let (first, second) = (NoteOperation("first", journal), NoteOperation("second", journal))
    #expect(groups[0].addOperation(first, exclusive: "b", in: domain))
    #expect(!groups[1].addOperation(second, exclusive: "a", in: domain))
    let error = try #require(second.errors.first as? OperationError)
    #expect(error.code == .waitCycle && second.isCancelled)
    #expect(error.message.contains("“second”") && error.message.contains("“a”, which “A” holds"))
    for held in begun { held.gate.open() }
    for group in groups { await group.finished() }
    #expect(journal.entries == ["first"])
  }

  /// The circle that is in its way goes with what it replaces.
  @Test func aMemberThatReplacesIsNotRefusedBecauseOfACircle() async {
    let begun = [HeldOperation(), HeldOperation()]
    let groups = zip(["A", "B"], begun).map { name, held in GroupOperation(name) { held } }
    for (group, key) in zip(groups, ["a", "b"]) {
      queue.addOperation(group, exclusive: ExclusivityKey(key), in: domain)
    }
    for held in begun { await held.begun.opened() }
    groups[0].addOperation(NoteOperation("first", journal), exclusive: "b", in: domain)
    #expect(groups[1].addOperation(NoteOperation("second", journal), exclusive: "a", policy: .replace, in: domain))
    #expect(groups[0].isCancelled && !groups[1].isCancelled)
    for held in begun { held.gate.open() }
    for group in groups { await group.finished() }
    #expect(journal.entries == ["second"])
  }

  // MARK: Slots

  /// A group with a member under keys.
  private func inner(_ keys: ExclusivityKey...) -> GroupOperation {
    let group = GroupOperation()
    group.addOperation(NoteOperation("member", journal), exclusive: keys, in: domain)
    return group
  }

  @Test func aMemberGoesBeforeThoseWhoWaitForTheSlotOfItsGroup() async {
    let single = OperationQueue.limited(to: 1)
    let begun = HeldOperation()
    let group = GroupOperation([begun])
    single.addOperation(group)
    await begun.begun.opened()
    let next = NoteOperation("next", journal)
    single.addOperation(next, exclusive: "a", in: domain)
    #expect(domain.holder(of: "a") == "next")
    group.addOperation(GroupOperation([inner("a", "b")]))
    begun.gate.open()
    await next.finished()
    #expect(journal.entries == ["member", "next"])
  }

  @Test func aMemberGoesBeforeThoseWhoWaitForTheSlotOfItsGroupInAGroup() async {
    let outer = GroupOperation([inner("a")])
    outer.maxConcurrentOperationCount = 1
    outer.addOperation(NoteOperation("next", journal), exclusive: "a", in: domain)
    queue.addOperation(outer)
    await outer.finished()
    #expect(journal.entries == ["member", "next"])
  }

  @Test func whoHasLostItsKeyToAMemberGivesItsPlaceUpWhenItIsCancelled() async {
    let single = OperationQueue.limited(to: 1)
    let member = HeldOperation().named("member")
    let group = GroupOperation([HeldOperation()])
    single.addOperation(group)
    let next = NoteOperation("next", journal)
    single.addOperation(next, exclusive: "a", in: domain)
    group.addOperation(member, exclusive: "a", in: domain)
    await member.begun.opened()
    #expect(domain.holder(of: "a") == "member" && domain.waiting(for: "a") == ["next"])
    next.cancel()
    #expect(domain.waiting(for: "a").isEmpty && !next.isFinished)
    for case let held as HeldOperation in group.operations { held.gate.open() }
    await next.finished()
    #expect(journal.entries.isEmpty)
  }

  @Test func butNotBeforeItsSiblings() async {
    let group = GroupOperation()
    group.maxConcurrentOperationCount = 1
    let held = HeldOperation()
    group.addOperation(held)
    for index in 0..<10 { group.addOperation(NoteOperation("\(index)", journal), exclusive: "a", in: domain) }
    queue.addOperation(group)
    held.gate.open()
    await group.finished()
    #expect(journal.entries == (0..<10).map(String.init))
  }

  /// Two slots: one for the group, whose member has been let in before `next`, and one for `next` in the end.
  @Test(arguments: [true, false]) func whoHasItsSlotTooEarlyWaitsForItsKeyThere(isCancelled: Bool) async {
    let double = OperationQueue.limited(to: 2)
    let (begun, other, member) = (HeldOperation(), HeldOperation(), HeldOperation())
    let group = GroupOperation([begun])
    double.addOperations([group, other])
    await begun.begun.opened()
    await other.begun.opened()
    let next = HeldOperation()
    let started = Gate()
    next.addCondition(OperationCondition(name: "") { _ in started.open() })
    double.addOperation(next, exclusive: "a", in: domain)
    group.addOperation(member, exclusive: "a", in: domain)
    await member.begun.opened()
    other.gate.open()
    let last = NoteOperation("last", journal)
    double.addOperation(last)
    while next.core.withLock({ $0.lifecycle.phase }) != .evaluating { await Task.yield() }
    #expect(!started.isOpen && next.state == .pending && !last.isFinished)
    if isCancelled {
      next.cancel()
      await next.finished()
      await last.finished()
      #expect(!started.isOpen && domain.waiting(for: "a").isEmpty)
    }
    member.gate.open()
    begun.gate.open()
    next.gate.open()
    await last.finished()
    await next.finished()
    await group.finished()
    #expect(next.begun.isOpen != isCancelled && isUnused)
  }

  // MARK: Ends of holders

  @Test func aGroupThatTimedOutKeepsItsKeyUntilItsMembersHaveFinished() async {
    let clock = ManualClock()
    let member = HeldOperation().named("member")
    let group = GroupOperation("group") {}
    group.clock = clock
    group.timeout = .seconds(1)
    group.addOperation(member, exclusive: "a", in: domain)
    let next = NoteOperation("next", journal)
    queue.addOperation(group, exclusive: "a", in: domain)
    queue.addOperation(next, exclusive: "a", in: domain)
    await member.begun.opened()
    clock.advance(by: .seconds(1))
    await group.finished()
    #expect(domain.holder(of: "a") == "member" && !next.isFinished)
    member.gate.open()
    await next.finished()
  }

  // MARK: Ends

  @Test func aCancelledGroupWindsDownWhoWaitsForAKey() async {
    let holder = HeldOperation()
    queue.addOperation(holder, exclusive: "a", in: domain)
    for isBegun in [true, false] {
      let begun = HeldOperation()
      let group = GroupOperation(isBegun ? [begun] : [])
      let members: [Operation] = [NoteOperation("own", journal), plain("foreign", journal)]
      for member in members { group.addOperation(member, exclusive: "a", in: domain) }
      if isBegun {
        queue.addOperation(group)
        await begun.begun.opened()
        begun.gate.open()
      }
      group.cancel()
      if !isBegun { queue.addOperation(group) }
      await group.finished()
      #expect(members.allSatisfy { $0.isFinished } && journal.entries.isEmpty)
    }
    holder.gate.open()
    await holder.finished()
  }

  @Test func membersOfAGroupThatNeverBeganAreFreeAndNotExclusiveAnyMore() async {
    let holder = HeldOperation()
    queue.addOperation(holder, exclusive: "a", in: domain)
    let operations: [Operation] = [NoteOperation("own", journal), plain("foreign", journal)]
    do {
      let group = GroupOperation()
      for operation in operations { group.addOperation(operation, exclusive: "a", in: domain) }
    }
    for operation in operations {
      queue.addOperation(operation)
      await operation.finished()
    }
    #expect(journal.entries == ["own", "foreign"])
    holder.gate.open()
    await holder.finished()
  }

  @Test func anOperationAddedToACancelledGroupThatHasEndedFinishesUnexecuted() async {
    let group = GroupOperation()
    group.cancel()
    queue.addOperation(group)
    await group.finished()
    for operation in [NoteOperation("own", journal), plain("foreign", journal)] {
      group.addOperation(operation, exclusive: "a", in: domain)
      #expect(operation.isFinished && operation.isCancelled)
    }
    #expect(journal.entries.isEmpty && isUnused)
  }
}
