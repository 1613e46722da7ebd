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

  private func note(_ name: String, _ keys: ExclusivityKey..., policy: ExclusivityPolicy = .wait) -> NoteOperation {
    NoteOperation(name, journal).exclusive(keys, policy: policy, in: domain)
  }

  private func held(_ name: String, _ keys: ExclusivityKey...) -> HeldOperation {
    HeldOperation().named(name).exclusive(keys, in: domain)
  }

  @Test func membersRequestTheirKeysOnceTheGroupHasBegun() async {
    let group = GroupOperation([note("own", "a", policy: .drop), note("next", "a")])
    #expect(domain.isUnused)
    let outsider = note("outsider", "a", policy: .drop)
    queue.addOperation(outsider)
    await outsider.finished()
    queue.addOperation(group)
    await group.finished()
    #expect(journal.entries == ["outsider", "own", "next"] && group.isSuccessful)
  }

  @Test func membersExecuteOneAtATimeInTheOrderTheyWereAdded() async {
    let members = (0..<100).map { index -> AsyncOperation in
      if !index.isMultiple(of: 5) { return note("\(index)", "a") }
      return GroupOperation([plain("\(index)", journal)]).exclusive("a", in: domain)
    }
    let group = GroupOperation(members)
    queue.addOperation(group)
    await group.finished()
    #expect(journal.entries == (0..<100).map(String.init))
  }

  @Test func aMemberThatWaitsForAKeyTakesNoSlot() async {
    let holder = held("holder", "a")
    queue.addOperation(holder)
    await holder.begun.opened()
    let next = NoteOperation("next", journal)
    let group = GroupOperation([note("waiting", "a"), next])
    group.maxConcurrentOperationCount = 1
    queue.addOperation(group)
    await next.finished()
    holder.gate.open()
    await group.finished()
    #expect(journal.entries == ["next", "waiting"])
  }

  @Test func aMemberAndAnOperationOfAQueueAreServedInOrderOfArrival() async {
    let holder = held("holder", "a")
    queue.addOperation(holder)
    await holder.begun.opened()
    for round in 0..<20 {
      let first = note("queue \(round)", "a")
      queue.addOperation(first)
      let group = GroupOperation([note("member \(round)", "a")])
      queue.addOperation(group)
      while domain.waiting(for: "a").count < 2 * (round + 1) { await Task.yield() }
    }
    holder.gate.open()
    await queue.finished()
    #expect(journal.entries == (0..<20).flatMap { ["queue \($0)", "member \($0)"] })
  }

  @Test func aMemberOfARunningGroupIsDroppedAndItsErrorIsTheGroups() async {
    let holder = held("holder", "a")
    let group = GroupOperation("group") { holder }
    queue.addOperation(group)
    await holder.begun.opened()
    let dropped = note("own", "a", policy: .drop)
    group.addOperation(dropped)
    await dropped.finished()
    holder.gate.open()
    await group.finished()
    #expect(dropped.isCancelled && journal.entries.isEmpty)
    #expect(group.failures.map(\.path) == [["group", "own"]] && OperationError.Code.excluded ~= group.errors[0])
  }

  @Test func aMemberThatIsReplacedFinishesBeforeTheHolder() async {
    let holder = held("holder", "a")
    queue.addOperation(holder)
    await holder.begun.opened()
    let member = note("member", "a")
    let group = GroupOperation([member])
    queue.addOperation(group)
    while domain.waiting(for: "a").isEmpty { await Task.yield() }
    let last = note("last", "a", policy: .replace)
    queue.addOperation(last)
    await group.finished()
    #expect(member.isCancelled && !holder.isFinished)
    holder.gate.open()
    await last.finished()
    #expect(journal.entries == ["last"])
  }

  @Test func aMemberOfASuspendedGroupKeepsNobodyWaiting() async {
    let holder = held("holder", "a")
    queue.addOperation(holder)
    await holder.begun.opened()
    let group = GroupOperation([note("member", "a")])
    queue.addOperation(group)
    while domain.waiting(for: "a").isEmpty { await Task.yield() }
    group.isSuspended = true
    let next = note("next", "a")
    queue.addOperation(next)
    holder.gate.open()
    await next.finished()
    #expect(journal.entries == ["next"])
    group.isSuspended = false
    await group.finished()
  }

  // MARK: Groups that hold a key

  @Test func whatIsInsideAHolderIsLetInAtAnyDepthAndSiblingsExcludeEachOther() async {
    let inner = GroupOperation("inner") { note("deepest", "a") }
    let (first, second) = (held("first", "a"), held("second", "a"))
    let outer = GroupOperation("outer") {
      GroupOperation("middle") { inner }
      first
      second
    }
    queue.addOperation(outer.exclusive("a", in: domain))
    let outsider = note("outsider", "a")
    queue.addOperation(outsider)
    await first.begun.opened()
    #expect(domain.holders(of: "a").first == "outer")
    #expect(!second.begun.isOpen && domain.waiting(for: "a").contains("outsider"))
    first.gate.open()
    await second.begun.opened()
    second.gate.open()
    await outsider.finished()
    #expect(journal.entries == ["deepest", "outsider"] && domain.isUnused)
  }

  @Test func whatARetryOrAFlatMapRunsInsideAHolderIsLetIn() async throws {
    let domain = domain
    let retry = RetryOperation(attempts: 2) { attempt -> ResultOperation<String> in
      if attempt == 1 { return ResultOperation { () throws -> String in throw TestError("once more") } }
      return ResultOperation { 0 }.flatMap { _ in ResultOperation { "let in" }.exclusive("a", in: domain) }
    }
    #expect(try await queue.run(retry.exclusive("a", in: domain)) == "let in")
  }

  @Test func aRetryKeepsItsKeysBetweenAttempts() async throws {
    let clock = ManualClock()
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { attempt in
      ResultOperation { if attempt == 1 { throw TestError("again") } }
    }
    retry.named("retry").clock = clock
    queue.addOperation(retry.exclusive("a", in: domain))
    await clock.waitForSleepers(1)
    let next = note("next", "a")
    queue.addOperation(next)
    #expect(domain.holders(of: "a") == ["retry"] && domain.waiting(for: "a") == ["next"])
    clock.advance(by: .seconds(1))
    await next.finished()
    #expect(retry.isSuccessful)
  }

  @Test func aMemberGoesBeforeThoseThatWaitForItsGroup() async {
    let begun = HeldOperation()
    let group = GroupOperation([begun])
    queue.addOperation(group.exclusive("a", in: domain))
    await begun.begun.opened()
    let outsider = note("outsider", "a", "b")
    queue.addOperation(outsider)
    let member = note("member", "b")
    group.addOperation(member)
    await member.finished()
    begun.gate.open()
    await outsider.finished()
    #expect(journal.entries == ["member", "outsider"])
  }

  @Test func aMemberGoesBeforeThoseThatWaitForItsGroupThroughOthersAndDomains() async {
    let other = ExclusivityDomain()
    let begun = HeldOperation()
    let group = GroupOperation([begun])
    queue.addOperation(group.exclusive("a", in: domain))
    await begun.begun.opened()
    let first = note("first", "a").exclusive("b", in: other)
    let second = note("second", "c").exclusive("b", in: other)
    queue.addOperations([first, second])
    let member = note("member", "c")
    group.addOperation(member)
    await member.finished()
    begun.gate.open()
    await second.finished()
    #expect(journal.entries == ["member", "first", "second"])
  }

  @Test func groupsWhoseMembersWouldWaitForEachOtherForEverAreToldSo() async throws {
    let begun = [HeldOperation(), HeldOperation()]
    let groups = zip(["A", "B"], begun).map { name, held in GroupOperation(name) { held } }
    for (group, key) in zip(groups, ["a", "b"]) { queue.addOperation(group.exclusive(ExclusivityKey(key), in: domain)) }
    for held in begun { await held.begun.opened() }
    let (first, second) = (note("first", "b"), note("second", "a"))
    groups[0].addOperation(first)
    while domain.waiting(for: "b").isEmpty { await Task.yield() }
    groups[1].addOperation(second)
    await second.finished()
    let error = try #require(second.errors.first as? OperationError)
    #expect(error.code == .waitCycle && second.isCancelled)
    #expect(error.message.contains("“second”") && error.message.contains("“a”, which “A” holds"))
    for held in begun { held.gate.open() }
    for group in groups { await group.finished() }
    #expect(journal.entries == ["first"])
  }

  /// The deadlock that is in its way goes with what it replaces.
  @Test func aMemberThatReplacesIsNotRefusedBecauseOfADeadlock() async {
    let begun = [HeldOperation(), HeldOperation()]
    let groups = zip(["A", "B"], begun).map { name, held in GroupOperation(name) { held } }
    for (group, key) in zip(groups, ["a", "b"]) { queue.addOperation(group.exclusive(ExclusivityKey(key), in: domain)) }
    for held in begun { await held.begun.opened() }
    groups[0].addOperation(note("first", "b"))
    while domain.waiting(for: "b").isEmpty { await Task.yield() }
    let second = note("second", "a", policy: .replace)
    groups[1].addOperation(second)
    for held in begun { held.gate.open() }
    for group in groups { await group.finished() }
    #expect(groups[0].isCancelled && !groups[1].isCancelled && journal.entries == ["second"])
  }

  // MARK: Slots

  @Test func aMemberIsNotStoppedByWhatIsBehindItsGroupInASerialQueue() async {
    let single = OperationQueue.limited(to: 1)
    let begun = HeldOperation()
    let group = GroupOperation([begun])
    single.addOperation(group)
    await begun.begun.opened()
    let next = note("next", "a")
    single.addOperation(next)
    group.addOperation(GroupOperation([GroupOperation([note("member", "a", "b")])]))
    begun.gate.open()
    await next.finished()
    #expect(journal.entries == ["member", "next"])
  }

  @Test func aMemberIsNotStoppedByWhatIsBehindItsGroupInAGroup() async {
    let outer = GroupOperation([GroupOperation([note("member", "a")]), note("next", "a")])
    outer.maxConcurrentOperationCount = 1
    queue.addOperation(outer)
    await outer.finished()
    #expect(journal.entries == ["member", "next"])
  }

  @Test func manyMembersPassManyThatWaitForTheSlotOfTheirGroup() async {
    let single = OperationQueue.limited(to: 1)
    let begun = HeldOperation()
    let group = GroupOperation([begun])
    single.addOperation(group)
    await begun.begun.opened()
    let behind = (0..<50).map { note("behind \($0)", "a") }
    for operation in behind { single.addOperation(operation) }
    for index in 0..<50 { group.addOperation(note("\(index)", "a")) }
    begun.gate.open()
    await single.finished()
    #expect(journal.entries == (0..<50).map(String.init) + (0..<50).map { "behind \($0)" })
  }

  @Test func aWaiterThatAMemberPassedLeavesTheWaitQueueWhenItIsCancelled() async {
    let single = OperationQueue.limited(to: 1)
    let begun = HeldOperation()
    let member = held("member", "a")
    let group = GroupOperation([begun])
    single.addOperation(group)
    await begun.begun.opened()
    let next = note("next", "a")
    single.addOperation(next)
    group.addOperation(member)
    await member.begun.opened()
    #expect(domain.holders(of: "a") == ["member"] && domain.waiting(for: "a") == ["next"])
    next.cancel()
    #expect(domain.waiting(for: "a").isEmpty && !next.isFinished)
    begun.gate.open()
    member.gate.open()
    await next.finished()
    #expect(journal.entries.isEmpty)
  }

  /// Two slots: one for the group, whose member passes `next`, and one for `next` while the member holds the key.
  @Test(arguments: [true, false]) func anOperationStartedBeforeItsKeyIsFreeWaitsInItsSlot(isCancelled: Bool) async {
    let double = OperationQueue.limited(to: 2)
    let (begun, other, member) = (HeldOperation(), HeldOperation(), held("member", "a"))
    let group = GroupOperation([begun])
    double.addOperations([group, other])
    await begun.begun.opened()
    await other.begun.opened()
    let next = held("next", "a")
    let evaluated = Gate()
    next.addCondition(OperationCondition(name: "") { _ in evaluated.open() })
    double.addOperation(next)
    group.addOperation(member)
    await member.begun.opened()
    other.gate.open()
    let last = note("last")
    double.addOperation(last)
    while next.core.withLock({ $0.lifecycle.phase }) != .evaluating { await Task.yield() }
    #expect(!evaluated.isOpen && next.state == .pending && !last.isFinished)
    if isCancelled {
      next.cancel()
      await next.finished()
      await last.finished()
      #expect(!evaluated.isOpen && domain.waiting(for: "a").isEmpty)
    }
    member.gate.open()
    begun.gate.open()
    next.gate.open()
    await last.finished()
    await next.finished()
    await group.finished()
    #expect(next.begun.isOpen != isCancelled)
    while !domain.isUnused { await Task.yield() }
  }

  @Test func butNotBeforeItsSiblings() async {
    let held = HeldOperation()
    let group = GroupOperation([held] + (0..<10).map { note("\($0)", "a") })
    group.maxConcurrentOperationCount = 1
    queue.addOperation(group)
    held.gate.open()
    await group.finished()
    #expect(journal.entries == (0..<10).map(String.init))
  }

  // MARK: Ends

  @Test func theKeysOfAGroupThatTimedOutAreFreeWhileAMemberDrains() async {
    let clock = ManualClock()
    let member = HeldOperation().named("member")
    let group = GroupOperation("group") { member }
    group.clock = clock
    group.timeout = .seconds(1)
    let next = note("next", "a")
    queue.addOperation(group.exclusive("a", in: domain))
    queue.addOperation(next)
    await member.begun.opened()
    clock.advance(by: .seconds(1))
    await next.finished()
    #expect(journal.entries == ["next"] && !member.isFinished)
    member.gate.open()
    await member.finished()
  }

  @Test func aCancelledGroupWindsDownWhatWaitsForAKey() async {
    let holder = held("holder", "a")
    queue.addOperation(holder)
    await holder.begun.opened()
    for isBegun in [true, false] {
      let begun = HeldOperation()
      let member = note("member", "a")
      let group = GroupOperation(isBegun ? [begun, member] : [member])
      if isBegun {
        queue.addOperation(group)
        await begun.begun.opened()
        begun.gate.open()
      }
      group.cancel()
      if !isBegun { queue.addOperation(group) }
      await group.finished()
      #expect(member.isFinished && journal.entries.isEmpty)
    }
    holder.gate.open()
    await holder.finished()
  }

  @Test func membersOfAGroupThatNeverBeganKeepTheirKeysAndRunElsewhere() async {
    let holder = held("holder", "a")
    queue.addOperation(holder)
    await holder.begun.opened()
    let operation = note("operation", "a")
    do { _ = GroupOperation([operation]) }
    #expect(domain.waiting(for: "a").isEmpty)
    queue.addOperation(operation)
    #expect(domain.waiting(for: "a") == ["operation"])
    holder.gate.open()
    await operation.finished()
    #expect(journal.entries == ["operation"])
  }

  @Test func anOperationAddedToACancelledGroupThatHasEndedFinishesUnexecuted() async {
    let group = GroupOperation()
    group.cancel()
    queue.addOperation(group)
    await group.finished()
    let operation = note("operation", "a")
    group.addOperation(operation)
    #expect(operation.isFinished && operation.isCancelled && journal.entries.isEmpty && domain.isUnused)
  }
}
