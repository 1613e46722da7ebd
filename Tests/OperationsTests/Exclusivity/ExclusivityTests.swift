import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

extension OperationQueue {
  func holder(of key: ExclusivityKey, in domain: ExclusivityDomain) async -> HeldOperation {
    await begin(HeldOperation().named("holder").exclusive(key, in: domain))
  }
}

@Suite(.timeLimit(.minutes(5)))
struct ExclusivityTests: NotingSuite {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue()
  let journal = Journal<String>()

  // MARK: Keys

  @Test func keysAreNamesValuesOrTypes() {
    let name: ExclusivityKey = "alert"
    #expect(name == ExclusivityKey("alert") && name != "Alert" && "\(name)" == "alert")
    let (string, value): (any Hashable & Sendable, ExclusivityKey) = ("alert", ExclusivityKey(7))
    #expect(ExclusivityKey(string) == name && value == ExclusivityKey(7) && "\(value)" == "7")
    #expect(value != ExclusivityKey(8) && value != ExclusivityKey(7 as Int64) && value != "7")
    let type = ExclusivityKey(Journal<Int>.self)
    #expect(type == ExclusivityKey(Journal<Int>.self) && type != ExclusivityKey(Journal<String>.self))
    #expect("\(type)" == "Journal<Int>" && type != "Journal<Int>")
    // Equal values are one key, whatever their descriptions. An object is one key, whatever its static type.
    #expect(Set([ExclusivityKey(0.0), ExclusivityKey(-0.0)]).count == 1 && ExclusivityKey(0.0) != ExclusivityKey(1.0))
    let letter = Letter(in: domain)
    #expect(ExclusivityKey(letter) == ExclusivityKey(letter as Document))
  }

  private class Document: Hashable, @unchecked Sendable {
    static func == (left: Document, right: Document) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
  }

  /// Asks the package when it is released, which would deadlock with a lock held.
  private final class Letter: Document, @unchecked Sendable {
    private let domain: ExclusivityDomain
    private let released: Gate

    init(in domain: ExclusivityDomain, released: Gate = Gate()) { (self.domain, self.released) = (domain, released) }

    deinit {
      _ = domain.holders(of: "other")
      released.open()
    }
  }

  @Test func theValueOfAKey_isReleasedWithoutALock() async {
    let released = Gate()
    // The table keeps the value of the first operation until the second has finished.
    let first = HeldOperation()
    do { first.exclusive(ExclusivityKey(Letter(in: domain, released: released)), in: domain) }
    await queue.begin(first)
    let second = AsyncOperation().exclusive(ExclusivityKey(Letter(in: domain)), in: domain)
    queue.addOperation(second)
    await first.finished(opening: first.gate)
    await second.finished()
    await released.opened()
    #expect(domain.isUnused)
  }

  @Test func severalKeysAreGrantedTogetherAndThoseOfDomainsAreDifferent() async {
    let other = ExclusivityDomain()
    let holder = await queue.holder(of: "a", in: domain)
    await queue.run(settling: [note("elsewhere").exclusive("a", in: other)])
    let all = HeldOperation().named("all").exclusive("b", "a", "b", in: domain).exclusive("a", in: other)
    queue.addOperation(all)
    #expect(domain.waiting(for: "a") == ["all"] && domain.holders(of: "b").isEmpty && other.holders(of: "a").isEmpty)
    holder.gate.open()
    await all.begun.opened()
    #expect([domain.holders(of: "a"), domain.holders(of: "b"), other.holders(of: "a")] == [["all"], ["all"], ["all"]])
    await all.finished(opening: all.gate)
    await poll { domain.isUnused && other.isUnused }
  }

  @Test func aKeyThatIsNamedTwiceCountsOnceWithTheSmallestLimit() async throws {
    let first = HeldOperation().limited("a", to: 3, in: domain).shared("a", in: domain).limited("a", to: 2, in: domain)
    let second = HeldOperation().shared("a", in: domain)
    let third = note("third").shared("a", in: domain)
    queue.addOperations([first, second])
    for operation in [first, second] { await operation.begun.opened() }
    queue.addOperation(third)
    #expect(domain.holders(of: "a").count == 2 && domain.waiting(for: "a") == ["third"])
    // A permitted operation also counts as waiting, but not in a report.
    #expect(try queue.stallReport().entry("third").cause == .exclusivity)
    await third.finished(opening: second.gate)
    first.gate.open()
  }

  @Test func readersRunBesideReadersAndWritersAlone() async {
    let readers = (0..<3).map { HeldOperation().named("reader \($0)").shared("db", in: domain) }
    queue.addOperations(readers)
    for reader in readers { await reader.begun.opened() }
    let writer = HeldOperation().named("writer").exclusive("db", in: domain)
    let late = (0..<2).map { HeldOperation().named("late \($0)").shared("db", in: domain) }
    queue.addOperations([writer] + late)
    #expect(domain.holders(of: "db") == ["reader 0", "reader 1", "reader 2"])
    #expect(domain.waiting(for: "db") == ["writer", "late 0", "late 1"], "the writer is not passed")
    for reader in readers { reader.gate.open() }
    await writer.begun.opened()
    #expect(domain.holders(of: "db") == ["writer"])
    writer.gate.open()
    for reader in late { await reader.begun.opened() }
    for reader in late { reader.gate.open() }
  }

  // MARK: Order and slots

  @Test func anOperationThatWaitsForAKey_takesNoSlotOfItsQueue() async {
    let holder = await queue.holder(of: "a", in: domain)
    let single = OperationQueue.limited(to: 1)
    let group = GroupOperation([plain("plain", journal)]).exclusive("a", in: domain)
    let next = note("next")
    single.addOperations([note("waiting").exclusive("a", in: domain), group, next])
    await next.finished()
    #expect(single.operations.count == 2 && journal.entries == ["next"])
    await group.finished(opening: holder.gate)
    #expect(journal.entries == ["next", "waiting", "plain"])
  }

  @Test func anOperationAddedAsAFoundationOperation_acquiresItsKeysWhenItIsStarted() async {
    let holder = await queue.holder(of: "a", in: domain)
    let single = OperationQueue.limited(to: 1)
    let next = note("next")
    single.addOperation(note("operation").exclusive("a", in: domain) as Operation)
    single.addOperation(next)
    await poll { !domain.waiting(for: "a").isEmpty }
    #expect(journal.entries.isEmpty, "it holds its slot meanwhile")
    await next.finished(opening: holder.gate)
    #expect(journal.entries == ["operation", "next"])
  }

  @Test func anOperationStartedByHand_acquiresItsKeysWithoutBlocking() async {
    let holder = await queue.holder(of: "a", in: domain)
    let operation = note("operation").exclusive("a", in: domain)
    await start(operation)
    #expect(operation.state == .pending && domain.waiting(for: "a") == ["operation"])
    // Another thread that added a dependency before the start may withdraw the request after it.
    operation.core.withLock { $0.keys }?.leave(forGood: false, unlessHeld: true)
    #expect(domain.waiting(for: "a") == ["operation"])
    await operation.finished(opening: holder.gate)
    #expect(journal.entries == ["operation"])
  }

  // MARK: Places that do not start their operations

  /// Each of them may delay others by its patience, here two seconds, and all of them together by no more. One after
  /// the other would take longer than the time limit.
  @Test(arguments: [false, true], [false, true])
  func manySuspendedPlaces_delayOthersOnce(areGroups: Bool, inAChain: Bool) async {
    let domain = ExclusivityDomain(patience: 2_000)
    let keys = (0...400).map { ExclusivityKey(inAChain ? "\($0)" : "a") }
    let waiters = (0..<400).map { note("\($0)").exclusive(keys[$0], keys[$0 + 1], in: domain) }
    let groups = areGroups ? waiters.map { GroupOperation([$0]) } : []
    let queues = areGroups ? [] : waiters.map { _ in OperationQueue.suspended() }
    for group in groups { group.isSuspended = true }
    queue.addOperations(groups)
    for (queue, waiter) in zip(queues, waiters) { queue.addOperation(waiter) }
    await poll { Set(keys).reduce(0) { $0 + domain.waiting(for: $1).count } == (inAChain ? 800 : 400) }
    await queue.run(settling: [note("behind").exclusive(keys, in: domain)])
    #expect(journal.entries == ["behind"])
    for group in groups { group.isSuspended = false }
    for queue in queues { queue.isSuspended = false }
    for waiter in waiters { await waiter.finished() }
    #expect(journal.count == 401)
  }

  @Test func noMoreOperationsOfAQueueAreReady_thanTheirKeyAdmits() async {
    let suspended = OperationQueue.suspended()
    let operations = (0..<10).map { note("\($0)").limited("a", to: 2, in: domain) }
    suspended.addOperations(operations)
    // It starts when the 20 ms of the queue have passed.
    await queue.run(settling: [note("other").limited("a", to: 2, in: domain)])
    #expect(operations.count { $0.isReady } == 2)
    await suspended.drained()
    #expect(journal.count == 11)
  }

  // MARK: Dependencies

  @Test func conditionsAreEvaluatedWhileTheKeysAreHeld() async {
    let operation = note("operation").exclusive("a", in: domain)
    operation.addCondition(OperationCondition(name: "") { _ in journal.write(domain.holders(of: "a").joined()) })
    await queue.run(settling: [operation])
    #expect(journal.entries == ["operation", "operation"])
  }

  @Test func aWaiterThatGainsADependency_givesItsPlaceUpUntilItIsRemoved() async {
    let holder = await queue.holder(of: "a", in: domain)
    let (early, late) = (note("early").exclusive("a", in: domain), note("late").exclusive("a", in: domain))
    queue.addOperation(early)
    late ==> early
    #expect(domain.waiting(for: "a").isEmpty)
    early.removeDependency(late)
    #expect(domain.waiting(for: "a") == ["early"])
    late ==> early
    queue.addOperation(late)
    await early.finished(opening: holder.gate)
    #expect(journal.entries == ["late", "early"])
  }

  /// The thread that adds a dependency may enter the request of an operation that another thread starts.
  @Test func anOperationThatIsStartedAfterItsRequest_takesItsKeysOrWaitsForThem() throws {
    let operations = ["first", "second"].map { note($0).exclusive("a", in: domain) }
    let turns = operations.compactMap { operation in operation.core.withLock { $0.keys } }
    let (first, second) = (try #require(turns.first), try #require(turns.last))
    #expect(first.enterWaitQueues().isCalled && domain.holders(of: "a").isEmpty)
    #expect(first.take() && domain.holders(of: "a") == ["first"])
    #expect(second.enterWaitQueues() == .waiting && !second.take())
    first.leave(forGood: true)
    #expect(domain.holders(of: "a") == ["second"], "it was started, so it holds its keys when it is called")
    second.leave(forGood: true)
    #expect(domain.isUnused)
  }

  @Test func aLongCallUnderOneKey_delaysNoCallUnderAnother() async {
    let (patient, suspended, next) = (ExclusivityDomain(patience: 600_000), OperationQueue.suspended(), HeldOperation())
    suspended.addOperation(note("patient").exclusive("a", in: patient))
    suspended.addOperation(note("called").exclusive("a", in: domain))
    await queue.begin(next.exclusive("a", in: domain))
    #expect(domain.holders(of: "a").count == 1)
    await next.finished(opening: next.gate)
    await suspended.drained()
  }

  /// An operation that has been called and gains a dependency leaves its line.
  @Test(arguments: [false, true]) func anOperationThatIsMadeToWaitForTheNextOne_runsAfterIt(isPassed: Bool) async {
    let suspended = OperationQueue.suspended()
    let (first, second) = (note("first").exclusive("a", in: domain), note("second").exclusive("a", in: domain))
    suspended.addOperations([first, second])
    if isPassed { await poll { KeyRegistry.withTable { $0.entries.all.contains { $0.state == .called(until: nil) } } } }
    second ==> first
    await suspended.drained()
    #expect(journal.entries == ["second", "first"])
    await poll { domain.isUnused }
  }

  // MARK: Ends

  @Test func aCancelledWaiterGivesItsPlaceUpAtOnce() async {
    let holder = await queue.holder(of: "a", in: domain)
    let stopped = OperationQueue.suspended()
    let (first, second) = (note("first"), note("second"))
    stopped.addOperation(first.exclusive("a", "b", in: domain))
    queue.addOperation(second.exclusive("b", in: domain))
    first.cancel()
    #expect(domain.waiting(for: "a").isEmpty && !first.isFinished)
    await second.finished()
    await stopped.drained(opening: [holder.gate])
    #expect(journal.entries == ["second"])
  }

  @Test func onceTheHolderHasSettled_itsKeyIsFree() async throws {
    // The loop does not suspend, so it would keep a thread that all tests share.
    let areFree = await onThread { [queue, domain] in
      (0..<2_000).allSatisfy { _ in
        let operation = AsyncBlockOperation { $0.finish() }
        queue.addOperation(operation.exclusive("a", in: domain))
        while !operation.core.withLock({ $0.isClosed }) {}
        return domain.isUnused
      }
    }
    #expect(try areFree.get())
  }
}
