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

  private var isUnused: Bool { domain.state.withLock { $0.table.isEmpty && $0.sharedRuns.isEmpty } }

  /// An operation that holds a key, executing.
  private func holder(of keys: ExclusivityKey...) async -> HeldOperation {
    let holder = HeldOperation().named("holder")
    #expect(queue.addOperation(holder, exclusive: keys, in: domain))
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
    queue.addOperation(other, exclusive: "a", in: ExclusivityDomain())
    await other.finished()
    holder.gate.open()
    await holder.finished()
  }

  // MARK: Never two at once

  @Test func acrossQueuesAndThreadsOneAtATimeEverythingFinishes() async {
    let queues = (0..<4).map { _ in OperationQueue() }
    let executing = Atomic(0)
    let operations = (0..<400).map { index -> Operation in
      let work: @Sendable () -> Void = { [journal] in
        if executing.add(1, ordering: .sequentiallyConsistent).newValue > 1 { journal.write("two at once") }
        executing.subtract(1, ordering: .sequentiallyConsistent)
      }
      if index.isMultiple(of: 3) { return BlockOperation(block: work) }
      return AsyncBlockOperation { operation in
        work()
        operation.finish()
      }
    }
    await onThreads(4) { [domain] thread in
      for index in stride(from: thread, to: 400, by: 4) {
        queues[index % 3].addOperation(operations[index], exclusive: "a", in: domain)
      }
    }
    for operation in operations { await operation.finished() }
    #expect(journal.entries.isEmpty)
    while !isUnused { await Task.yield() }
  }

  @Test func theyExecuteInTheOrderTheyWereAdded() async {
    let holder = await holder(of: "a")
    let operations: [Operation] = (0..<50).map { $0.isMultiple(of: 2) ? note("\($0)") : plain("\($0)", journal) }
    for operation in operations { queue.addOperation(operation, exclusive: "a", in: domain) }
    #expect(domain.holder(of: "a") == "holder" && domain.waiting(for: "a") == (0..<50).map(String.init))
    holder.gate.open()
    for operation in operations { await operation.finished() }
    #expect(journal.entries == (0..<50).map(String.init))
    #expect(domain.holder(of: "a") == nil && domain.waiting(for: "a").isEmpty)
  }

  @Test func oneThatWaitsForAKeyTakesNoSlotOfItsQueue() async {
    let holder = await holder(of: "a")
    let single = OperationQueue.limited(to: 1)
    let (waiting, foreign, next) = (note("waiting"), plain("foreign", journal), note("next"))
    single.addOperation(waiting, exclusive: "a", in: domain)
    single.addOperation(foreign, exclusive: "a", in: domain)
    single.addOperation(next)
    await next.finished()
    #expect(single.operations.count == 2 && journal.entries == ["next"])
    holder.gate.open()
    await foreign.finished()
    #expect(journal.entries == ["next", "waiting", "foreign"])
  }

  @Test func severalKeysAreGrantedTogetherOrNotAtAll() async {
    let first = await holder(of: "a")
    let both = HeldOperation().named("both")
    let last = note("last")
    queue.addOperation(both, exclusive: "b", "a", "b", in: domain)
    queue.addOperation(last, exclusive: "b", in: domain)
    #expect(domain.holder(of: "b") == nil && domain.waiting(for: "b") == ["both", "last"])
    first.gate.open()
    await both.begun.opened()
    #expect(domain.holder(of: "a") == "both" && domain.holder(of: "b") == "both")
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
        queue.addOperation(operations[index], exclusive: some, in: domain)
      }
    }
    for operation in operations { await operation.finished() }
    #expect(isUnused)
  }

  @Test func withoutAnyKeyItIsJustAdded() async {
    let operation = note("free")
    #expect(queue.addOperation(operation, exclusive: [], policy: .drop, in: domain))
    await operation.finished()
    #expect(journal.entries == ["free"])
  }

  // MARK: Dependencies

  @Test func oneThatWaitsForOthersAsksWhenTheyHaveFinished() async {
    for kind in 0..<2 {
      let journal = Journal<String>()
      func make(_ name: String) -> Operation { kind == 0 ? NoteOperation(name, journal) : plain(name, journal) }
      let (first, second) = (make("first"), make("second"))
      second ==> first
      queue.addOperation(first, exclusive: "a", in: domain)
      queue.addOperation(second, exclusive: "a", in: domain)
      await first.finished()
      #expect(journal.entries == ["second", "first"])
    }
  }

  @Test func oneThatGainsADependencyWhileItWaitsForItsKeyGivesItsPlaceUp() async {
    let holder = await holder(of: "a")
    let (early, late) = (note("early"), note("late"))
    queue.addOperation(early, exclusive: "a", in: domain)
    late ==> early
    #expect(domain.waiting(for: "a").isEmpty)
    queue.addOperation(late, exclusive: "a", in: domain)
    holder.gate.open()
    await early.finished()
    #expect(journal.entries == ["late", "early"])
  }

  /// A dependency comes when the operation has decided to ask, and does not stand in line yet.
  @Test func oneThatGainsADependencyInTheInstantOfAskingWaitsForItAndAsksAgain() async {
    final class Admission: OperationAdmission, @unchecked Sendable {
      let operation: AsyncOperation
      let dependency = AsyncOperation()
      var calls: [String] = []

      init(to operation: AsyncOperation) { self.operation = operation }

      override func operationAsks() {
        calls.append("asks")
        if calls == ["asks"] { dependency ==> operation }
      }

      override func operationPostpones() -> Bool {
        calls.append("postpones")
        return calls.count > 2
      }
    }
    let operation = note("operation")
    let admission = Admission(to: operation)
    operation.require(admission)
    operation.permitAdmission()
    #expect(admission.calls == ["asks", "postpones", "postpones"])
    admission.dependency.start()
    #expect(admission.calls.last == "asks")
    operation.admit()
    await start(operation)
    #expect(journal.entries == ["operation"])
  }

  @Test func oneThatNeedNotWaitForTheOtherAnyMoreAsks() async {
    let other = note("other")
    let operation = note("operation")
    other ==> operation
    queue.addOperation(operation, exclusive: "a", in: domain)
    #expect(domain.holder(of: "a") == nil)
    operation.removeDependency(other)
    await operation.finished()
    #expect(journal.entries == ["operation"])
  }

  @Test func theGateShowsInAPlainOperationsDependenciesOnly() async {
    let holder = await holder(of: "a")
    let (own, foreign) = (note("own"), plain("foreign", journal))
    queue.addOperation(own, exclusive: "a", in: domain)
    queue.addOperation(foreign, exclusive: "a", in: domain)
    #expect(own.dependencies.isEmpty && foreign.dependencies.map(\.name) == ["exclusive “a”"])
    holder.gate.open()
    await foreign.finished()
  }

  // MARK: Going

  @Test func aCancelledWaiterGivesItsPlaceUpAtOnce() async {
    let holder = await holder(of: "a")
    let stopped = OperationQueue.suspended()
    let (first, second) = (note("first"), note("second"))
    stopped.addOperation(first, exclusive: "a", "b", in: domain)
    queue.addOperation(second, exclusive: "b", in: domain)
    first.cancel()
    #expect(domain.waiting(for: "a").isEmpty && !first.isFinished)
    await second.finished()
    holder.gate.open()
    stopped.isSuspended = false
    await first.finished()
    #expect(journal.entries == ["second"])
  }

  @Test func aCancelledPlainWaiterGivesItsPlaceUpWhenItFinishes() async {
    let holder = await holder(of: "a")
    let stopped = OperationQueue.suspended()
    let (first, second) = (plain("first", journal), note("second"))
    stopped.addOperation(first, exclusive: "a", "b", in: domain)
    queue.addOperation(second, exclusive: "b", in: domain)
    first.cancel()
    #expect(domain.waiting(for: "b") == ["first", "second"])
    stopped.isSuspended = false
    await second.finished()
    #expect(journal.entries == ["second"] && first.isFinished)
    holder.gate.open()
    await holder.finished()
  }

  @Test func aCancelledHolderKeepsItsKeyUntilItFinishes() async {
    let holder = await holder(of: "a")
    let next = note("next")
    queue.addOperation(next, exclusive: "a", in: domain)
    holder.cancel()
    #expect(domain.holder(of: "a") == "holder" && domain.waiting(for: "a") == ["next"])
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
      queue.addOperation(operation, exclusive: "a", in: domain)
      if operation.timeout == .seconds(1) {
        await clock.waitForSleepers(1)
        clock.advance(by: .seconds(1))
      }
      await operation.finished()
      #expect(isUnused)
    }
  }

  @Test func aHolderThatIsReleasedWithoutHavingRunLeavesItsKeyFree() async {
    do {
      let operation = note("forgotten")
      operation.require(ExclusivityRequest(["a"], for: operation, policy: .wait, domain: domain))
      operation.permitAdmission()
      #expect(domain.holder(of: "a") == "forgotten")
    }
    #expect(isUnused)
  }

  @Test func keysNobodyUsesAreForgotten() async {
    let group = GroupOperation()
    for index in 0..<4000 {
      group.addOperation(AsyncOperation(), exclusive: ExclusivityKey("\(index)"), in: domain)
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
    for member in members { group.addOperation(member, exclusive: "a", in: domain) }
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
        let operation = index.isMultiple(of: 2) ? ResultOperation(block) : BlockOperation(block: block)
        queue.addOperation(operation, exclusive: "a", ExclusivityKey("\(index)"), in: domain)
        if index.isMultiple(of: 3) { operation.cancel() }
      }
      queue.cancelAllOperations()
      holder.gate.open()
    }
    await live.none()
    while !isUnused { await Task.yield() }
  }

  @Test func whatACancelledPlainOperationWaitedForIsLetGo() async {
    let live = LiveCount()
    do {
      let token = LiveCount.Token(live)
      let never = BlockOperation { withExtendedLifetime(token) {} }
      let operation = plain("", journal)
      operation.addDependency(never)
      queue.addOperation(operation, exclusive: "a", in: domain)
      operation.cancel()
      await operation.finished()
    }
    await live.none()
  }

  /// What it waited for calls itself finished, and tells Foundation a moment later.
  @Test func aCancelledPlainOperationMayGoBeforeItsDependencyTells() async {
    final class Late: Operation, @unchecked Sendable {
      let flag = Locked(false)
      override var isFinished: Bool { flag.withLock { $0 } }
    }
    for isMember in [false, true] {
      let late = Late()
      let live = LiveCount()
      do {
        let token = LiveCount.Token(live)
        let operation = BlockOperation { withExtendedLifetime(token) {} }
        operation.addDependency(late)
        if isMember {
          let group = GroupOperation()
          group.addOperation(operation, exclusive: "a", in: domain)
          queue.addOperation(group)
          late.flag.withLock { $0 = true }
          group.cancel()
        } else {
          queue.addOperation(operation, exclusive: "a", in: domain)
          late.flag.withLock { $0 = true }
          operation.cancel()
        }
      }
      await live.none()
      while !isUnused { await Task.yield() }
      late.didChangeValue(for: \.isFinished)
    }
  }

  // MARK: Awaited

  @Test func whoRunsAnOperationUnderAKeyGetsItsValue() async throws {
    let holder = await holder(of: "a")
    async let value = queue.run(ResultOperation { 7 }, exclusive: "a", in: domain)
    async let nothing: Void = queue.run(AsyncOperation(), exclusive: "a", in: domain)
    while domain.waiting(for: "a").count < 2 { await Task.yield() }
    holder.gate.open()
    #expect(try await value == 7)
    try await nothing
  }

  @Test func whoIsCancelledWhileItWaitsForAKeyReturns() async {
    let holder = await holder(of: "a")
    let task = Task { try await queue.run(ResultOperation { 7 }, exclusive: "a", in: domain) }
    while domain.waiting(for: "a").isEmpty { await Task.yield() }
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    holder.gate.open()
    await holder.finished()
  }

  // MARK: Starting by hand

  #if !os(iOS) && !os(tvOS) && !os(watchOS) && !os(visionOS)
  @Test func startingOneByHandThatWaitsForAKey() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let domain = ExclusivityDomain()
      let holder = HeldOperation()
      OperationQueue().addOperation(holder, exclusive: "a", in: domain)
      let operation = AsyncOperation().named("impatient")
      OperationQueue().addOperation(operation, exclusive: "a", "b", in: domain)
      operation.start()
    }
    expectSentence("“impatient” is not ready: it waits for “a”, “b”. Leave it to its queue", in: result)
  }
  #endif
}
