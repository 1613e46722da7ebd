import Foundation
import OperationsTestSupport
import Soak
import Synchronization
import Testing

@testable import Operations

/// Operations of queues that exclude each other.
@Suite(.timeLimit(.minutes(5)))
struct ExclusivityTests {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private var isUnused: Bool { domain.isUnused }

  /// An operation that holds a key, executing.
  private func holder(of keys: ExclusivityKey...) async -> HeldOperation {
    let holder = HeldOperation().named("holder")
    queue.addOperation(holder.exclusive(keys, in: domain))
    await holder.begun.opened()
    return holder
  }

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  // MARK: Keys

  @Test func keysAreNamesOrTypes() {
    let name: ExclusivityKey = "alert"
    #expect(name == ExclusivityKey("alert") && name != "Alert" && "\(name)" == "alert")
    let type = ExclusivityKey(Journal<Int>.self)
    #expect(type == ExclusivityKey(Journal<Int>.self) && type != ExclusivityKey(Journal<String>.self))
    #expect("\(type)" == "Journal<Int>" && type != "Journal<Int>")
  }

  @Test func theSameKeyInAnotherDomainIsAnother() async {
    let holder = await holder(of: "a")
    let other = note("other")
    queue.addOperation(other.exclusive("a", in: ExclusivityDomain()))
    await other.finished()
    holder.gate.open()
    await holder.finished()
  }

  @Test func keysOfSeveralDomainsAreAcquiredTogether() async {
    let other = ExclusivityDomain()
    let first = await holder(of: "a")
    let both = HeldOperation().named("both").exclusive("a", in: domain).exclusive("a", in: other)
    queue.addOperation(both)
    #expect(domain.waiting(for: "a") == ["both"] && other.holders(of: "a").isEmpty)
    first.gate.open()
    await both.begun.opened()
    #expect(domain.holders(of: "a") == ["both"] && other.holders(of: "a") == ["both"])
    both.gate.open()
    await both.finished()
    while !isUnused || !other.isUnused { await Task.yield() }
  }

  @Test func aKeyThatIsNamedTwiceCountsOnceWithTheSmallestLimit() async {
    let first = HeldOperation().limited("a", to: 3, in: domain).shared("a", in: domain).limited("a", to: 2, in: domain)
    let second = HeldOperation().shared("a", in: domain)
    let third = note("third").shared("a", in: domain)
    queue.addOperations([first, second])
    await first.begun.opened()
    await second.begun.opened()
    queue.addOperation(third)
    #expect(domain.holders(of: "a").count == 2 && domain.waiting(for: "a") == ["third"])
    second.gate.open()
    await third.finished()
    first.gate.open()
    await first.finished()
  }

  @Test func keysAreGivenInTheBuilderAndInGraphs() async throws {
    let holder = await holder(of: "a")
    let group = GroupOperation { note("first").exclusive("a", in: domain) ==> note("second") }
    queue.addOperation(group)
    let last = note("last")
    note("before").exclusive("a", in: domain) ==> last
    queue.addGraph(endingIn: last)
    while domain.waiting(for: "a").count < 2 { await Task.yield() }
    #expect(journal.entries.isEmpty)
    holder.gate.open()
    await group.finished()
    await last.finished()
    #expect(journal.count == 4)
  }

  // MARK: Modes

  @Test func readersRunBesideReadersAndWritersAlone() async {
    let readers = (0..<3).map { HeldOperation().named("reader \($0)").shared("db", in: domain) }
    for reader in readers { queue.addOperation(reader) }
    for reader in readers { await reader.begun.opened() }
    let writer = HeldOperation().named("writer").exclusive("db", in: domain)
    let late = note("late").shared("db", in: domain)
    queue.addOperation(writer)
    queue.addOperation(late)
    #expect(domain.holders(of: "db") == ["reader 0", "reader 1", "reader 2"])
    #expect(domain.waiting(for: "db") == ["writer", "late"], "the writer is not passed")
    for reader in readers { reader.gate.open() }
    await writer.begun.opened()
    #expect(domain.holders(of: "db") == ["writer"] && journal.entries.isEmpty)
    writer.gate.open()
    await late.finished()
  }

  @Test func noMoreThanTheLimitRunAtOnceInAllQueuesAndGroups() async {
    final class Counts: Sendable {
      let executing = Atomic(0)
      let most = Atomic(0)
    }
    let counts = Counts()
    let operations = (0..<300).map { _ in
      TaskOperation {
        counts.most.max(counts.executing.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
        await Task.yield()
        counts.executing.subtract(1, ordering: .relaxed)
      }.limited("host", to: 4, in: domain)
    }
    let queues = [OperationQueue(), .limited(to: 5)]
    let group = GroupOperation(Array(operations[..<100]))
    queue.addOperation(group)
    for (index, operation) in operations[100...].enumerated() { queues[index % 2].addOperation(operation) }
    for operation in operations { await operation.finished() }
    let most = counts.most.load(ordering: .relaxed)
    #expect((1...4).contains(most), "\(most)")
  }

  // MARK: Never two at once

  @Test func acrossQueuesAndThreadsOneAtATimeEverythingFinishes() async {
    let queues = (0..<4).map { _ in OperationQueue() }
    let executing = Atomic(0)
    let operations = (0..<400).map { index -> AsyncOperation in
      let work: @Sendable () -> Void = { [journal] in
        if executing.add(1, ordering: .sequentiallyConsistent).newValue > 1 { journal.write("two at once") }
        executing.subtract(1, ordering: .sequentiallyConsistent)
      }
      if index.isMultiple(of: 3) { return GroupOperation([BlockOperation(block: work)]) }
      return AsyncBlockOperation { operation in
        work()
        operation.finish()
      }
    }
    await onThreads(4) { [domain] thread in
      for index in stride(from: thread, to: 400, by: 4) {
        queues[index % 3].addOperation(operations[index].exclusive("a", in: domain))
      }
    }
    for operation in operations { await operation.finished() }
    #expect(journal.entries.isEmpty)
    while !isUnused { await Task.yield() }
  }

  @Test func theyExecuteInTheOrderTheyWereAdded() async {
    let holder = await holder(of: "a")
    let operations = (0..<50).map { note("\($0)").exclusive("a", in: domain) }
    for operation in operations { queue.addOperation(operation) }
    #expect(domain.holders(of: "a") == ["holder"] && domain.waiting(for: "a") == (0..<50).map(String.init))
    holder.gate.open()
    for operation in operations { await operation.finished() }
    #expect(journal.entries == (0..<50).map(String.init))
    #expect(domain.holders(of: "a").isEmpty && domain.waiting(for: "a").isEmpty)
  }

  @Test func theyExecuteInTheOrderTheyWereAddedToASuspendedQueue() async {
    queue.isSuspended = true
    let operations = (0..<20).map { note("\($0)").exclusive("a", in: domain) }
    queue.addOperations(operations)
    while KeyRegistry.read({ table in table.entries.values.allSatisfy { $0.state != .overdue } }) { await Task.yield() }
    queue.isSuspended = false
    for operation in operations { await operation.finished() }
    #expect(journal.entries == (0..<20).map(String.init))
  }

  @Test func oneThatWaitsForAKeyTakesNoSlotOfItsQueue() async {
    let holder = await holder(of: "a")
    let single = OperationQueue.limited(to: 1)
    let (waiting, group, next) = (note("waiting"), GroupOperation([plain("plain", journal)]), note("next"))
    single.addOperation(waiting.exclusive("a", in: domain))
    single.addOperation(group.exclusive("a", in: domain))
    single.addOperation(next)
    await next.finished()
    #expect(single.operations.count == 2 && journal.entries == ["next"])
    holder.gate.open()
    await group.finished()
    #expect(journal.entries == ["next", "waiting", "plain"])
  }

  /// Only a running operation holds keys: one whose queue does not start it is passed.
  @Test func anOperationInASuspendedQueueKeepsNobodyWaiting() async {
    let suspended = OperationQueue.suspended()
    let first = note("first").exclusive("a", in: domain)
    suspended.addOperation(first)
    let second = note("second").exclusive("a", in: domain)
    queue.addOperation(second)
    await second.finished()
    #expect(journal.entries == ["second"])
    suspended.isSuspended = false
    await first.finished()
    #expect(isUnused)
  }

  @Test func oneAddedAsAFoundationOperationAcquiresItsKeysWhenItIsStarted() async {
    let holder = await holder(of: "a")
    let single = OperationQueue.limited(to: 1)
    let operation: Operation = note("operation").exclusive("a", in: domain)
    let next = note("next")
    single.addOperation(operation)
    single.addOperation(next)
    while domain.waiting(for: "a").isEmpty { await Task.yield() }
    #expect(journal.entries.isEmpty, "it holds its slot meanwhile")
    holder.gate.open()
    await next.finished()
    #expect(journal.entries == ["operation", "next"])
  }

  @Test func oneStartedByHandAcquiresItsKeysWithoutBlocking() async {
    let holder = await holder(of: "a")
    let operation = note("operation").exclusive("a", in: domain)
    await start(operation)
    #expect(operation.state == .pending && domain.waiting(for: "a") == ["operation"])
    holder.gate.open()
    await operation.finished()
    #expect(journal.entries == ["operation"])
  }

  @Test func severalKeysAreGrantedTogetherOrNotAtAll() async {
    let first = await holder(of: "a")
    let both = HeldOperation().named("both")
    let last = note("last")
    queue.addOperation(both.exclusive("b", "a", "b", in: domain))
    queue.addOperation(last.exclusive("b", in: domain))
    #expect(domain.holders(of: "b").isEmpty && domain.waiting(for: "b") == ["both", "last"])
    first.gate.open()
    await both.begun.opened()
    #expect(domain.holders(of: "a") == ["both"] && domain.holders(of: "b") == ["both"])
    both.gate.open()
    await last.finished()
  }

  @Test func keysNamedInAnyOrderLeadToNoDeadlock() async {
    let keys: [ExclusivityKey] = ["a", "b", "c", "d"]
    let operations = (0..<400).map { _ in AsyncBlockOperation { $0.finish() } }
    await onThreads(4) { [domain, queue] thread in
      var generator = SeededGenerator(seed: UInt64(thread))
      for index in stride(from: thread, to: 400, by: 4) {
        let some = Array(keys.shuffled(using: &generator).prefix(1 + index % 4))
        queue.addOperation(operations[index].exclusive(some, in: domain))
      }
    }
    for operation in operations { await operation.finished() }
    #expect(isUnused)
  }

  // MARK: Dependencies

  @Test func oneThatWaitsForOthersRequestsItsKeysWhenTheyHaveFinished() async {
    let (first, second) = (note("first").exclusive("a", in: domain), note("second").exclusive("a", in: domain))
    second ==> first
    queue.addOperation(first)
    queue.addOperation(second)
    await first.finished()
    #expect(journal.entries == ["second", "first"])
  }

  @Test func conditionsAreEvaluatedWhileTheKeysAreHeld() async {
    let operation = note("operation").exclusive("a", in: domain)
    operation.addCondition(
      OperationCondition(name: "holding") { [journal, domain] _ in
        journal.write(domain.holders(of: "a").joined())
      }
    )
    queue.addOperation(operation)
    await operation.finished()
    #expect(journal.entries == ["operation", "operation"])
  }

  @Test func oneThatGainsADependencyWhileItWaitsForItsKeyGivesItsPlaceUp() async {
    let holder = await holder(of: "a")
    let (early, late) = (note("early"), note("late"))
    queue.addOperation(early.exclusive("a", in: domain))
    late ==> early
    #expect(domain.waiting(for: "a").isEmpty)
    queue.addOperation(late.exclusive("a", in: domain))
    holder.gate.open()
    await early.finished()
    #expect(journal.entries == ["late", "early"])
  }

  @Test func oneThatNeedNotWaitForTheOtherAnyMoreAsks() async {
    let other = note("other")
    let operation = note("operation")
    other ==> operation
    queue.addOperation(operation.exclusive("a", in: domain))
    #expect(domain.holders(of: "a").isEmpty && domain.waiting(for: "a").isEmpty)
    operation.removeDependency(other)
    await operation.finished()
    #expect(journal.entries == ["operation"])
  }

  // MARK: Going

  @Test func aCancelledWaiterGivesItsPlaceUpAtOnce() async {
    let holder = await holder(of: "a")
    let stopped = OperationQueue.suspended()
    let (first, second) = (note("first"), note("second"))
    stopped.addOperation(first.exclusive("a", "b", in: domain))
    queue.addOperation(second.exclusive("b", in: domain))
    first.cancel()
    #expect(domain.waiting(for: "a").isEmpty && !first.isFinished)
    await second.finished()
    holder.gate.open()
    stopped.isSuspended = false
    await first.finished()
    #expect(journal.entries == ["second"])
  }

  @Test func aCancelledHolderKeepsItsKeyUntilItFinishes() async {
    let holder = await holder(of: "a")
    let next = note("next")
    queue.addOperation(next.exclusive("a", in: domain))
    holder.cancel()
    #expect(domain.holders(of: "a") == ["holder"] && domain.waiting(for: "a") == ["next"])
    holder.gate.open()
    await next.finished()
  }

  @Test func howeverTheHolderFinishesItsKeyIsFree() async {
    let clock = ManualClock()
    let endings: [(AsyncOperation) -> Void] = [
      { $0.finish() }, { $0.finish(with: TestError("failed")) }, { $0.cancel() }, { $0.timeout = .zero },
      { $0.addCondition(OperationCondition(name: "never") { _ in throw TestError("unmet") }) },
      { $0.timeout = .seconds(1) },
    ]
    for ending in endings {
      let operation = HeldOperation()
      operation.clock = clock
      ending(operation)
      queue.addOperation(operation.exclusive("a", in: domain))
      if operation.timeout == .seconds(1) {
        await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
      }
      await operation.finished()
      #expect(isUnused)
    }
  }

  @Test func keysNobodyUsesAreForgotten() async {
    let group = GroupOperation()
    for index in 0..<4000 {
      group.addOperation(AsyncOperation().exclusive(ExclusivityKey("\(index)"), in: domain))
    }
    queue.addOperation(group)
    await group.finished()
    #expect(isUnused)
  }

  @Test func manyWaitersAreCancelledOneByOneAndTheRestHasItsTurn() async {
    let holder = await holder(of: "a")
    let group = GroupOperation()
    let members = (0..<2000).map { _ in AsyncOperation() }
    group.addOperations([])
    for member in members { group.addOperation(member.exclusive("a", in: domain)) }
    queue.addOperation(group)
    await Task.yield()
    for member in members.dropFirst(10).dropLast(10) { member.cancel() }
    holder.gate.open()
    await group.finished()
    #expect(members.filter(\.isSuccessful).count == 20 && isUnused)
  }

  @Test func releasedOperationsLeaveNothingBehind() async {
    let live = LiveCount()
    do {
      let holder = await holder(of: "a")
      for index in 0..<20 {
        let token = LiveCount.Token(live)
        let block: @Sendable () -> Void = { withExtendedLifetime(token) {} }
        let operation: AsyncOperation =
          index.isMultiple(of: 2) ? ResultOperation(block) : GroupOperation([BlockOperation(block: block)])
        queue.addOperation(operation.exclusive("a", ExclusivityKey("\(index)"), in: domain))
        if index.isMultiple(of: 3) { operation.cancel() }
      }
      queue.cancelAllOperations()
      holder.gate.open()
    }
    await live.none()
    while !isUnused { await Task.yield() }
  }

  // MARK: Awaited

  @Test func whoRunsAnOperationUnderAKeyGetsItsValue() async throws {
    let holder = await holder(of: "a")
    async let value = queue.run(ResultOperation { 7 }.exclusive("a", in: domain))
    async let nothing: Void = queue.run(AsyncOperation().exclusive("a", in: domain))
    while domain.waiting(for: "a").count < 2 { await Task.yield() }
    holder.gate.open()
    #expect(try await value == 7)
    try await nothing
  }

  @Test func whoIsCancelledWhileItWaitsForAKeyReturns() async {
    let holder = await holder(of: "a")
    let task = Task { try await queue.run(ResultOperation { 7 }.exclusive("a", in: domain)) }
    while domain.waiting(for: "a").isEmpty { await Task.yield() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    holder.gate.open()
    await holder.finished()
  }

  // MARK: Starting by hand

  // MARK: Bad input

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  @Test(arguments: 0..<6) func badInputTraps(number: Int) async {
    let sentences = [
      "“x” cannot be limited to 0 operations under the key “k”. Set a limit of 1 or more.",
      "“x” cannot be throttled to 0 starts under the key “k”. Set a count of 1 or more.",
      "Set an interval that is longer than zero.", "Set an interval that is longer than zero.",
      "cannot be given the key “k”. Add the keys before", "cannot be given the key “k”. Add the keys before",
    ]
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      [number = number as Int] in
      let x = AsyncOperation().named("x")
      switch number {
      case 0: x.limited("k", to: 0)
      case 1: x.throttled("k", to: 0, per: .seconds(1))
      case 2: x.throttled("k", to: 1, per: .zero)
      case 3: x.throttled("k", to: 1, per: .seconds(-1))
      case 4:
        let queue = OperationQueue()
        queue.isSuspended = true
        queue.addOperation(x)
        x.exclusive("k")
      default:
        let group = GroupOperation([x])
        withExtendedLifetime(group) { _ = x.shared("k") }
      }
    }
    expectSentence(sentences[number], in: result)
  }
  #endif

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  @Test func startingOneByHandThatWaitsForAKey() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let domain = ExclusivityDomain()
      let holder = HeldOperation()
      OperationQueue().addOperation(holder.exclusive("a", in: domain))
      let operation = AsyncOperation().named("impatient")
      OperationQueue().addOperation(operation.exclusive("a", "b", in: domain))
      operation.start()
    }
    expectSentence("“impatient” is not ready: it waits for the keys “a”, “b”. Leave it to its queue", in: result)
  }
  #endif
}
