import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ExclusivityPolicyTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()
  private let clock = ManualClock()

  private func held(_ name: String, _ keys: ExclusivityKey..., policy: ExclusivityPolicy = .wait) -> HeldOperation {
    let operation = HeldOperation().named(name)
    queue.addOperation(operation.exclusive(keys, policy: policy, in: domain))
    return operation
  }

  private func note(_ name: String, policy: ExclusivityPolicy = .wait) -> NoteOperation {
    NoteOperation(name, journal).exclusive("a", policy: policy, in: domain)
  }

  /// Returns an operation that has executed under the key “a” once, backs off, and will execute once more.
  private func pausing(_ name: String, policy: ExclusivityPolicy, isRepeated: Bool = false) async -> AsyncOperation {
    let (journal, backoff) = (journal, Backoff.constant(.seconds(1)))
    let operation: AsyncOperation =
      if isRepeated {
        RepeatOperation(pausing: backoff) { $0 <= 2 ? NoteOperation("\(name) \($0)", journal) : nil }
      } else {
        RetryOperation(attempts: 2, backoff: backoff) { attempt in
          NoteOperation("\(name) \(attempt)", journal, failing: attempt == 1 ? TestError("again") : nil)
        }
      }
    operation.named(name).exclusive("a", policy: policy, in: domain).clock = clock
    queue.addOperation(operation)
    await clock.waitForSleepers(1)
    return operation
  }

  // MARK: Arrival

  @Test(arguments: [ExclusivityPolicy.replace, .latest], [false, true])
  func aNewerOperation_endsOneThatBacksOff(policy: ExclusivityPolicy, isRepeated: Bool) async {
    let old = await pausing("old", policy: policy, isRepeated: isRepeated)
    let newest = held("newest", "a", policy: policy)
    #expect(old.isCancelled)
    await newest.begun.opened()
    clock.advance(by: .seconds(1))
    #expect(newest.isExecuting && !newest.isCancelled)
    await newest.finished(opening: newest.gate)
    await clock.run(until: old)
    #expect(old.isCancelled && newest.isSuccessful && journal.entries == ["old 1"])
    #expect(old.errors as? [OperationError] == (policy == .replace ? [OperationError(.replaced, "")] : []))
  }

  @Test(arguments: [false, true])
  func whileAnOperationBacksOff_duplicatesAreDropped_andItIsNotDroppedWhenItReturns(isRepeated: Bool) async {
    let operation = await pausing("old", policy: .drop, isRepeated: isRepeated)
    let duplicate = note("duplicate", policy: .drop)
    await queue.run(settling: [duplicate])
    #expect(duplicate.errors.map { "\($0)" } == ["“duplicate” did not run because “old” has the key “a”."])
    let holder = await queue.holder(of: "a", in: domain)
    clock.advance(by: .seconds(1))
    #expect(operation.isExecuting && operation.errors.isEmpty)
    holder.gate.open()
    await clock.run(until: operation)
    #expect(operation.isSuccessful && journal.entries == ["old 1", "old 2"])
  }

  @Test(arguments: [ExclusivityPolicy.drop, .replace, .latest])
  func anOperationThatGainsADependency_keepsItsPlaceAndActsNoMore(policy: ExclusivityPolicy) async {
    let (first, late, place) = (note("first", policy: policy), AsyncOperation(), OperationQueue.suspended())
    place.addOperation(first)
    late ==> first
    let holder = await queue.holder(of: "a", in: domain)
    let next = note("next")
    queue.addOperation(next)
    place.isSuspended = false
    await queue.run(settling: [late])
    await poll { first.isFinished || domain.waiting(for: "a") == ["first", "next"] }
    #expect(![first, holder, next].contains { $0.isCancelled })
    holder.gate.open()
    for operation in [first, next] { await operation.finished() }
    // After 20 ms without a thread for it, the first one lets the next one pass.
    #expect(Set(journal.entries) == ["first", "next"])
  }

  // MARK: Drop

  @Test func aDroppedOperationFinishesUnexecutedAlthoughItsQueueIsFull() async throws {
    queue.maxConcurrentOperationCount = 1
    let holder = await queue.holder(of: "a", in: domain)
    let (second, next, other) = (NoteOperation("second", journal), NoteOperation("next", journal), OperationQueue())
    other.addOperation(second ==> next)
    queue.addOperation(second.exclusive("b", "a", policy: .drop, in: domain))
    #expect(second.isFinished && second.isCancelled && second.errors.count == 1)
    let error = try #require(second.errors.first as? OperationError)
    #expect(error.code == .excluded)
    #expect(error.message == "“second” did not run because “holder” has the key “a”.")
    await next.finished()
    #expect(journal.entries == ["next"] && domain.holders(of: "b").isEmpty)
    holder.gate.open()
  }

  @Test func aKeyThatIsWaitedForIsTaken() async {
    let first = held("first", "a")
    let second = held("second", "a", "b")
    let third = held("third", "b", policy: .drop)
    #expect(third.errors.map { "\($0)" } == ["“third” did not run because “second” has the key “b”."])
    let fourth = note("fourth").exclusive("free", policy: .drop, in: domain)
    queue.addOperation(fourth)
    #expect(!fourth.isCancelled, "the policy is not that of the key that is in use")
    for operation in [first, second] { operation.gate.open() }
    await fourth.finished()
    #expect(journal.entries == ["fourth"])
  }

  @Test func anOperationWithADependency_isDroppedWhenThatHasFinished() async {
    let (holder, dependency) = (held("holder", "a"), held("dependency"))
    let operation = note("dropped", policy: .drop)
    queue.addOperation(dependency ==> operation)
    #expect(!operation.isCancelled)
    await operation.finished(opening: dependency.gate)
    #expect(operation.isCancelled && journal.entries.isEmpty)
    holder.gate.open()
  }

  /// The key is free even before the observers of the holder are notified.
  @Test func aKeyIsFreeWhenItsHolderIsSeenToBeFinished() async {
    for _ in 0..<200 {
      let holder = note("")
      queue.addOperation(holder)
      await poll { holder.isFinished }
      #expect(domain.holders(of: "a").isEmpty)
      let next = note("", policy: .drop)
      await queue.run(settling: [next])
      #expect(!next.isCancelled)
    }
  }

  @Test(arguments: [ExclusivityPolicy.drop, .replace])
  func whatAPolicyCancels_isNoFailureOfItsGroup(_ policy: ExclusivityPolicy) async {
    let holder = HeldOperation().named("own").exclusive("a", in: domain)
    let group = await queue.add(GroupOperation([holder], errorPolicy: .stopOnFailure), until: holder.begun)
    let new = AsyncOperation().exclusive("a", policy: policy, in: domain)
    group.addOperation(new)
    if policy == .replace { await poll { holder.isCancelled } } else { await new.finished() }
    await group.finished(opening: holder.gate)
    let cancelled = policy == .drop ? new : holder
    #expect(
      cancelled.isCancelled && [.excluded, .replaced].contains((cancelled.errors.first as? OperationError)?.code)
    )
    #expect(group.isSuccessful && group.failures.isEmpty)
  }

  // MARK: Replace

  @Test func aCancelledOperationReplacesNothing() async {
    let holder = await queue.holder(of: "a", in: domain)
    let (group, operation) = (GroupOperation([note("", policy: .replace)]), note("", policy: .replace))
    group.cancel()
    operation.cancel()
    await queue.run(settling: [group, operation])
    #expect(!holder.isCancelled && domain.waiting(for: "a").isEmpty && journal.entries.isEmpty)
    holder.gate.open()
  }

  @Test func itCancelsThoseBeforeAndWaitsForTheHolder() async {
    let (first, other) = (await queue.holder(of: "a", in: domain), held("other", "b"))
    let second = held("second", "a", "b")
    let foreign = GroupOperation([plain("foreign", journal)]).exclusive("a", in: domain)
    let member = note("member")
    let group = GroupOperation([member])
    queue.addOperations([foreign, group])
    await poll { domain.waiting(for: "a").contains("member") }
    let last = held("last", "a", policy: .replace)
    #expect([first, second, foreign, member].map(\.isCancelled) == [true, true, true, true])
    #expect(!other.isCancelled && !last.isCancelled)
    for operation in [second, foreign, group] { await operation.finished() }
    #expect(!first.isFinished && domain.waiting(for: "a") == ["last"])
    first.gate.open()
    await last.begun.opened()
    #expect(first.isFinished)
    for operation in [last, other] { operation.gate.open() }
    await last.finished()
    #expect(last.isSuccessful && journal.entries.isEmpty)
  }

  @Test func fromManyThreadsExactlyOneIsNotReplaced() async {
    let operations = (0..<200).map { _ in AsyncOperation() }
    let stopped = OperationQueue.suspended()
    await onThreads(4) { [domain] thread in
      for index in stride(from: thread, to: 200, by: 4) {
        stopped.addOperation(operations[index].exclusive("a", policy: .replace, in: domain))
      }
    }
    #expect(operations.filter { !$0.isCancelled }.count == 1)
    stopped.isSuspended = false
    for operation in operations { await operation.finished() }
  }

  // MARK: Latest

  @Test func latest_tenSavesRunTwice() async {
    let holder = await queue.holder(of: "a", in: domain)
    let saves = (1...9).map { note("\($0)", policy: .latest) }
    for save in saves {
      queue.addOperation(save)
      #expect(domain.waiting(for: "a") == [save.name])
    }
    for save in saves.dropLast() { await save.finished() }
    #expect(saves.map(\.isCancelled) == Array(repeating: true, count: 8) + [false])
    #expect(saves.allSatisfy { $0.errors.isEmpty } && holder.isExecuting && !holder.isCancelled)
    await saves[8].finished(opening: holder.gate)
    #expect(journal.entries == ["9"] && holder.isSuccessful && saves[8].isSuccessful)
  }

  @Test(arguments: [false, true]) func latest_runsOnlyTheNewestOfASuspendedPlace(isGroup: Bool) async {
    let (suspended, group) = (OperationQueue.suspended(), GroupOperation("group").started())
    group.isSuspended = true
    let saves = (1...4).map { note("\($0)", policy: .latest) }
    if isGroup { group.addOperations(saves) } else { suspended.addOperations(saves) }
    (group.isSuspended, suspended.isSuspended) = (false, false)
    for save in saves { await save.finished() }
    #expect(journal.entries == ["4"] && saves.map(\.isCancelled) == [true, true, true, false])
    group.finish()
  }

  @Test func latest_cancelsWaitersOfAnyOfItsKeysAndNoHolder() async {
    let holders = [await queue.holder(of: "a", in: domain), await queue.holder(of: "b", in: domain)]
    let others = [held("both", "b", "c"), held("unrelated", "d"), held("third", "c")]
    let last = HeldOperation().exclusive("a", policy: .replace, in: domain).exclusive("b", policy: .latest, in: domain)
    queue.addOperation(last)
    #expect(holders.map(\.isCancelled) == [true, false], "only one key replaces its holder")
    await others[0].finished()
    #expect(others.map(\.isCancelled) == [true, false, false])
    for operation in holders + others.dropFirst() + [last] { operation.gate.open() }
    for operation in others + [last] { await operation.finished() }
    #expect(last.isSuccessful && holders[1].isSuccessful && others[1].isSuccessful)
  }

  @Test func latest_leavesSharedHoldersAndCancelsSharedWaiters() async {
    let holders = (0..<2).map { _ in HeldOperation().shared("a", in: domain) }
    for holder in holders { await queue.begin(holder) }
    let (exclusive, shared) = (note("exclusive"), NoteOperation("shared", journal).shared("a", in: domain))
    queue.addOperations([exclusive, shared])
    let (last, after) = (note("last", policy: .latest), NoteOperation("after", journal).shared("a", in: domain))
    queue.addOperations([last, after])
    for operation in [exclusive, shared] { await operation.finished() }
    #expect(exclusive.isCancelled && shared.isCancelled && holders.allSatisfy { $0.isExecuting && !$0.isCancelled })
    for holder in holders { holder.gate.open() }
    await after.finished()
    #expect(journal.entries == ["last", "after"])
  }
}
