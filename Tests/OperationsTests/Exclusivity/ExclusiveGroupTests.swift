import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct ExclusiveGroupTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()
  private let clock = ManualClock()

  private func note(_ name: String, _ keys: ExclusivityKey..., policy: ExclusivityPolicy = .wait) -> NoteOperation {
    NoteOperation(name, journal).exclusive(keys, policy: policy, in: domain)
  }

  private func held(_ name: String, _ keys: ExclusivityKey...) -> HeldOperation {
    HeldOperation().named(name).exclusive(keys, in: domain)
  }

  /// Returns a group that executes, and its member, which keeps it from finishing.
  private func group(
    _ name: String = "group",
    _ keys: ExclusivityKey...,
    in queue: OperationQueue? = nil
  ) async -> (group: GroupOperation, member: HeldOperation) {
    let member = HeldOperation()
    let group = GroupOperation(name) { member }
    (queue ?? self.queue).addOperation(group.exclusive(keys, in: domain))
    await member.begun.opened()
    return (group, member)
  }

  /// Because its group is full, “passing” has its turn. Then the group of “passing” is full, and “early” has its turn.
  @Test func aMemberThatTakesTheLastSlot_keepsIt() async {
    let (one, two) = (GroupOperation("one").started(), GroupOperation("two").started())
    let (holder, last, passing) = (held("holder", "held"), held("last"), held("passing", "b"))
    for group in [one, two] { group.maxConcurrentOperationCount = 1 }
    queue.addOperation(holder)
    await holder.begun.opened()
    let (a, early, b) = (note("a", "a", "held"), note("early", "a"), note("b", "b", "held"))
    two.addOperation(a)
    one.addOperations([early, b])
    two.addOperation(passing)
    one.addOperation(last)
    await last.begun.opened()
    await passing.begun.opened()
    #expect(journal.entries.isEmpty)
    for held in [holder, last, passing] { held.gate.open() }
    for group in [one, two] { await group.ended() }
    #expect(journal.entries.sorted() == ["a", "b", "early"])
  }

  @Test func membersRequestTheirKeysOnceTheGroupHasBegun() async {
    let group = GroupOperation([note("own", "a", policy: .drop), note("next", "a")])
    #expect(domain.isUnused)
    let outsider = note("outsider", "a", policy: .drop)
    await queue.run(settling: [outsider])
    await queue.run(settling: [group])
    #expect(journal.entries == ["outsider", "own", "next"] && group.isSuccessful)
  }

  // MARK: Groups that hold a key

  @Test func membersOfAHolderAreLetInAtAnyDepthAndSiblingsExcludeEachOther() async {
    let (first, second, outsider) = (held("first", "a"), held("second", "a"), note("outsider", "a"))
    let outer = GroupOperation("outer") {
      GroupOperation("middle") { GroupOperation("inner") { note("deepest", "a") }.exclusive("a", in: domain) }
      first
      second
    }
    queue.addOperations([outer.exclusive("a", in: domain), outsider])
    await first.begun.opened()
    #expect(domain.holders(of: "a").first == "outer")
    #expect(!second.begun.isOpen && domain.waiting(for: "a").contains("outsider"))
    first.gate.open()
    await second.begun.opened()
    await outsider.finished(opening: second.gate)
    #expect(journal.entries == ["deepest", "outsider"] && domain.isUnused)
  }

  @Test func aMemberThatATaskWithKeysRuns_usesTheKeysOfItsGroup() async throws {
    let (group, member) = await group("group", "a")
    try await withKeys(.exclusive("b"), in: domain) { try await group.run(note("member", "a", "b")) }
    await group.finished(opening: member.gate)
    #expect(journal.entries == ["member"] && domain.isUnused)
  }

  /// Returns a retry that fails once and then runs an operation under its own key.
  private func retry(_ backoff: Backoff = .constant(.seconds(1))) -> RetryOperation<String> {
    let retry = RetryOperation<String>(attempts: 2, backoff: backoff) { [domain, journal] attempt in
      journal.write("attempt \(attempt)")
      if attempt == 1 { throw TestError("again") }
      return ResultOperation { 0 }.flatMap { _ in ResultOperation { "let in" }.exclusive("a", in: domain) }
    }
    retry.named("retry").clock = clock
    return retry
  }

  @Test(arguments: [false, true])
  func aRetryGivesItsKeysBackWhileItBacksOff_andKeepsItsPlace(isMember: Bool) async throws {
    let retry = retry().exclusive("a", in: domain)
    queue.addOperation(isMember ? GroupOperation([retry]).exclusive("group", in: domain) : retry)
    await clock.waitForSleepers(1)
    #expect(domain.holders(of: "a").isEmpty && domain.waiting(for: "a").isEmpty && retry.isExecuting)
    #expect(domain.holders(of: "group").isEmpty != isMember, "a group keeps its key across the attempts")
    let next = await queue.holder(of: "a", in: domain)
    let last = note("last", "a")
    queue.addOperation(last)
    clock.advance(by: .seconds(1))
    #expect(domain.waiting(for: "a") == ["retry", "last"] && journal.count == 1)
    await next.finished(opening: next.gate)
    #expect(try await retry.value == "let in")
    await last.finished()
    #expect(journal.entries == ["attempt 1", "attempt 2", "last"])
  }

  @Test func aRetryThatWaitsForItsKeysAgain_isCancelledAtOnce() async {
    let retry = retry().exclusive("a", in: domain)
    queue.addOperation(retry)
    await clock.waitForSleepers(1)
    let next = await queue.holder(of: "a", in: domain)
    clock.advance(by: .seconds(1))
    retry.cancel()
    #expect(retry.isFinished && domain.waiting(for: "a").isEmpty)
    next.gate.open()
  }

  @Test func eachAttemptIsOneStartOfAThrottle() async throws {
    let retry = retry(.immediate).throttled("api", to: 1, per: .seconds(1), in: domain)
    queue.addOperation(retry)
    // The window of the first attempt is measured from before its execution.
    await clock.waitForSleepers(1)
    await poll { domain.waiting(for: "api") == ["retry"] }
    #expect(journal.count == 1)
    clock.advance(by: .seconds(1))
    #expect(try await retry.value == "let in")
  }

  @Test func aReplacedAttempt_isAnErrorOfItsRetry() async throws {
    let isReplaced = { @Sendable [journal] (error: any Error, _: Int) in
      journal.write("\(error)")
      return OperationError.Code.replaced ~= error
    }
    let retry = RetryOperation<String>(attempts: 2, retryIf: isReplaced) { [domain] attempt in
      ResultOperation { "\(attempt)" }.named("attempt \(attempt)").exclusive("a", in: domain)
    }
    let first = await queue.holder(of: "a", in: domain)
    queue.addOperation(retry)
    await poll { domain.waiting(for: "a") == ["attempt 1"] }
    queue.addOperation(note("newer", "a", policy: .replace))
    first.gate.open()
    #expect(try await retry.value == "2")
    let message = "“attempt 1” was cancelled because “newer” replaces it under the same key."
    #expect(Set(journal.entries) == [message, "newer"])
  }

  /// The member uses the key of the group, and does not keep it.
  @Test func theKeyOfAGroupThatTimedOut_isFreeWhileAMemberDrains() async {
    let (member, next) = (held("member", "a"), note("next", "a"))
    let group = GroupOperation([member]).exclusive("a", in: domain)
    (group.clock, group.timeout) = (clock, .seconds(1))
    queue.addOperations([group, next])
    await member.begun.opened()
    await clock.advance(by: .seconds(1), sleepers: 1)
    await next.finished()
    #expect(journal.entries == ["next"] && !member.isFinished)
    member.gate.open()
  }

  @Test(arguments: [2, 3])
  func groupsWhoseMembersWouldWaitForEachOtherForEverAreToldSo(count: Int) async throws {
    let keys: [ExclusivityKey] = ["a", "b", "c"]
    var groups: [(group: GroupOperation, member: HeldOperation)] = []
    for index in 0..<count { groups.append(await group("group \(index)", keys[index])) }
    for index in 0..<(count - 1) {
      groups[index].group.addOperation(note("\(index)", keys[index + 1]))
      await poll { !domain.waiting(for: keys[index + 1]).isEmpty }
    }
    let last = note("last", "a")
    groups[count - 1].group.addOperation(last)
    await last.finished()
    let error = try #require(last.errors.first as? OperationError)
    #expect(error.code == .waitCycle && last.isCancelled)
    #expect(error.message.contains("“last”") && error.message.contains("the key “a”, held by “group 0”"))
    await queue.drained(opening: groups.map { $0.member.gate })
    #expect(Set(journal.entries) == Set((0..<(count - 1)).map(String.init)))
  }

  /// The deadlock in its way disappears together with the operations that it replaces.
  @Test func aMemberThatReplacesIsNotRefusedBecauseOfADeadlock() async {
    let (a, b) = (await group("A", "a"), await group("B", "b"))
    a.group.addOperation(note("first", "b"))
    await poll { !domain.waiting(for: "b").isEmpty }
    b.group.addOperation(note("second", "a", policy: .replace))
    await queue.drained(opening: [a.member.gate, b.member.gate])
    #expect(a.group.isCancelled && !b.group.isCancelled && journal.entries == ["second"])
  }

  // MARK: Slots

  @Test func aWaiterThatAMemberPassedLeavesTheWaitQueueWhenItIsCancelled() async {
    let single = OperationQueue.limited(to: 1)
    let (group, begun) = await group(in: single)
    let member = held("member", "a", "b")
    let next = note("next", "a")
    single.addOperation(next)
    group.addOperation(GroupOperation([GroupOperation([member])]))
    await member.begun.opened()
    #expect(domain.holders(of: "a") == ["member"] && domain.waiting(for: "a") == ["next"])
    next.cancel()
    #expect(domain.waiting(for: "a").isEmpty && !next.isFinished)
    begun.gate.open()
    await next.finished(opening: member.gate)
    #expect(journal.entries.isEmpty)
  }

  /// Two slots: one for the group, whose member passes `next`, and one for `next` while the member holds the key.
  @Test(arguments: [true, false]) func anOperationStartedBeforeItsKeyIsFreeWaitsInItsSlot(isCancelled: Bool) async {
    let double = OperationQueue.limited(to: 2)
    let (group, begun) = await group(in: double)
    let (other, member, next, last) = (held("other"), held("member", "a"), held("next", "a"), note("last"))
    await double.begin(other)
    let evaluated = Gate()
    next.addCondition(OperationCondition(name: "") { _ in evaluated.open() })
    double.addOperation(next)
    group.addOperation(member)
    await member.begun.opened()
    other.gate.open()
    double.addOperation(last)
    await poll { next.core.withLock({ $0.lifecycle.phase }) == .suspended(.keys) }
    #expect(!evaluated.isOpen && next.state == .pending && !last.isFinished)
    if isCancelled {
      next.cancel()
      await next.finished()
      await last.finished()
      #expect(!evaluated.isOpen && domain.waiting(for: "a").isEmpty)
    }
    await double.drained(opening: [member, begun, next].map(\.gate))
    if isCancelled { #expect(!next.begun.isOpen) } else { await next.begun.opened() }
    await poll { domain.isUnused }
  }

  // MARK: Claims of several strengths

  /// Returns the operation with a claim that admits others.
  private func weakly<O: AsyncOperation>(_ operation: O, isLimited: Bool) -> O {
    isLimited ? operation.limited("db", to: 3, in: domain) : operation.shared("db", in: domain)
  }

  /// Returns the operation with a claim that admits no others.
  private func strongly<O: AsyncOperation>(_ operation: O, isLimited: Bool) -> O {
    isLimited ? operation.limited("db", to: 3, weight: 3, in: domain) : operation.exclusive("db", in: domain)
  }

  /// The waiter outside does not wait for the group, so the members of the group do not go before it.
  @Test(arguments: [false, true]) func membersOfAHolder_doNotPassAWaiterOutside(isLimited: Bool) async {
    let (group, held) = await group("group", "a")
    let reader = weakly(HeldOperation(), isLimited: isLimited)
    group.addOperation(reader)
    await reader.begun.opened()
    let outside = strongly(note("outside"), isLimited: isLimited)
    let next = weakly(note("next"), isLimited: isLimited)
    queue.addOperation(outside)
    group.addOperation(next)
    let free = note("free")
    group.addOperation(free)
    await free.finished()
    reader.gate.open()
    for operation in [outside, next] { await operation.finished() }
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["free", "outside", "next"])
  }

  @Test(arguments: ["queue", "Foundation", "hand"])
  func aMemberOfAGroupThatNeverBegan_keepsItsKeysAndRunsElsewhere(place: String) async {
    let holder = await queue.holder(of: "a", in: domain)
    let operation = note("operation", "a")
    do {
      let group = GroupOperation([operation])
      #expect(!operation.isReady && !group.isFinished)
    }
    #expect(operation.isReady && domain.waiting(for: "a").isEmpty)
    switch place {
    case "queue": queue.addOperation(operation)
    case "Foundation": queue.addByFoundation(operation)
    default: await start(operation)
    }
    await poll { domain.waiting(for: "a") == ["operation"] }
    await operation.finished(opening: holder.gate)
    #expect(journal.entries == ["operation"])
  }
}
