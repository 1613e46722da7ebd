import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct SlotTests: NotingSuite {
  private let domain = ExclusivityDomain()
  private let queue = OperationQueue.limited(to: 1)
  private let group = GroupOperation("group", maxConcurrentOperationCount: 1).started()
  let journal = Journal<String>()
  private let gate = Gate()

  private final class Counter { var count = 0 }

  private func occupy() async -> Task<Void, any Error> {
    let begun = Gate()
    let task = immediately {
      try await queue.withSlot("held") {
        begun.open()
        await withCheckedContinuation { continuation in gate.whenOpen { continuation.resume() } }
      }
    }
    await begun.opened()
    return task
  }

  private func write(_ entry: String, inAGroup: Bool) async throws {
    if inAGroup {
      try await group.withSlot("slot") { journal.write(entry) }
    } else {
      try await queue.withSlot("slot") { journal.write(entry) }
    }
  }

  /// The main actor may occupy the main queue, because it only uses the thread of it.
  @MainActor @Test func theBodyRunsInTheIsolationOfItsCaller() async throws {
    for queue in [queue, .main] {
      let counter = Counter()
      let same = try await queue.withSlot {
        MainActor.preconditionIsolated()
        await Task.yield()
        counter.count += 1
        return counter
      }
      #expect(same === counter && counter.count == 1)
    }
  }

  @Test func itOccupiesASlotUnderItsName_evenIfItIsCancelledMeanwhile() async throws {
    let holder = await occupy()
    holder.cancel()
    queue.cancelAllOperations()
    queue.addOperation(NoteOperation("next", journal))
    #expect(queue.operations.map(\.name) == ["held", "next"])
    #expect(queue.stallReport().entries.contains { $0.waitsFor == ["held"] } && journal.entries.isEmpty)
    try await holder.value(opening: gate)
    await queue.finished()
    #expect(journal.entries == ["next"])
  }

  /// The group makes the operation of a slot that was free when its members are read.
  @Test(arguments: [true, false]) func aFreeSlot_isAMemberInItsPlace(isRead: Bool) async throws {
    let group = GroupOperation("group", maxConcurrentOperationCount: 3).started()
    let (progress, first, last) = (group.progress, HeldOperation().named("first"), HeldOperation().named("last"))
    group.addOperation(first)
    let operation = try await group.withSlot("slot") { () -> AsyncOperation? in
      #expect(!group.addOperation(Operation(), ifBelow: 2), "it is a member")
      group.addOperation(last)
      if !isRead { return nil }
      #expect(group.operations.map(\.name) == ["first", "slot", "last"])
      let operation = group.operations[1] as? AsyncOperation
      #expect(operation?.isExecuting == true && operation === group.operations(named: "slot").first)
      operation?.cancel()
      return operation
    }
    #expect(operation?.isFinished == (isRead ? true : nil) && group.operations == [first, last])
    #expect(progress.completedUnitCount == 1 && progress.totalUnitCount == 3)
    for held in [first, last] { await held.finished(opening: held.gate) }
    group.finish()
    try await group.completed()
  }

  @Test func itHoldsKeys_andWaitsForThemWithoutASlot() async throws {
    let holder = await OperationQueue().holder(of: "key", in: domain)
    let waiter = immediately {
      try await queue.withSlot("waiter", holding: .exclusive("key"), in: domain) {
        journal.write(domain.holders(of: "key").joined())
      }
    }
    try await queue.withSlot { journal.write("free") }
    #expect(domain.waiting(for: "key") == ["waiter"])
    try await waiter.value(opening: holder.gate)
    #expect(journal.entries == ["free", "waiter"])
    await queue.finished()
    #expect(domain.isUnused)
  }

  // MARK: Cancellation

  @Test func cancelledWhileItWaits_returnsAtOnce() async throws {
    let holder = await occupy()
    let waiters = (0..<2).map { index in
      immediately { try await queue.withSlot("waiter \(index)") { journal.write("never") } }
    }
    waiters[0].cancel()
    queue.cancelOperations(named: "waiter 1")
    for waiter in waiters { await #expect(throws: CancellationError.self) { try await waiter.value } }
    try await holder.value(opening: gate)
    await queue.finished()
    #expect(journal.entries.isEmpty && queue.operations.isEmpty)
  }

  @Test(arguments: [false, true], [false, true])
  func anOperationThatAnotherCallerFinishes_endsTheWait(byObserver: Bool, inAGroup: Bool) async throws {
    let held = HeldOperation()
    if inAGroup { group.addOperation(held) } else { queue.addOperation(held) }
    await held.begun.opened()
    let waiter = immediately { try await write("never", inAGroup: inAGroup) }
    let found = inAGroup ? group.operations(named: "slot") : queue.operations(named: "slot")
    let operation = try #require(found.first as? AsyncOperation)
    if byObserver { operation.addObserver(didStart: { $0.finish() }) } else { operation.finish() }
    await #expect(throws: CancellationError.self) { try await waiter.value(opening: held.gate) }
    await queue.finished()
    await group.waitForRoom(below: 1)
    #expect(journal.entries.isEmpty)
  }

  @Test(arguments: [GroupOperation.ErrorPolicy.stopOnFailure, .cancelOnFailure, .cancelDependents])
  func aTryThatExpires_isNoFailureOfTheGroup(policy: GroupOperation.ErrorPolicy) async throws {
    let held = HeldOperation()
    group.errorPolicy = policy
    group.addOperations([held, note("next")])
    await held.begun.opened()
    await #expect(throws: OperationError(.expired, "")) { try await group.withSlot(waitLimit: .zero) {} }
    await held.finished(opening: held.gate)
    try await group.withSlot { journal.write("slot") }
    #expect(journal.entries == ["next", "slot"] && group.failures.isEmpty)
    group.finish()
    try await group.completed()
  }

  @Test(arguments: [true, false])
  func aGroupThatIsOver_throws(isCancelled: Bool) async throws {
    let group = GroupOperation("over")
    if isCancelled { group.cancel() }
    await queue.run(settling: [group])
    let error = await #expect(throws: (any Error).self) { try await group.withSlot { journal.write("never") } }
    #expect(isCancelled ? error is CancellationError : (error as? OperationError)?.code == .shutDown)
    #expect(journal.entries.isEmpty)
  }

  @Test(arguments: [true, false])
  func racesOfACancellationAndASlot_leaveNothingBehind(inAGroup: Bool) async {
    for _ in 0..<(isThorough ? 100_000 : 700) {
      let tasks = (0..<2).map { _ in Task { try await write("", inAGroup: inAGroup) } }
      tasks[1].cancel()
      for task in tasks { _ = await task.result }
    }
    await queue.finished()
    await group.waitForRoom(below: 1)
    #expect(queue.operations.isEmpty && group.operations.isEmpty)
  }

  /// A value for a key. The claimant retains it.
  private struct Token: Hashable, Sendable {
    let token: LiveCount.Token

    static func == (left: Self, right: Self) -> Bool { true }
    func hash(into hasher: inout Hasher) {}
  }

  private enum Holder: CaseIterable { case keys, slot, slotOfAGroup }

  @Test(arguments: Holder.allCases) private func nothingIsRetained_afterAnyEnd(holder: Holder) async throws {
    let live = LiveCount()
    let hold = { @Sendable (_ body: () async throws -> Void) async throws in
      let claim = ExclusivityClaim.exclusive(ExclusivityKey(Token(token: LiveCount.Token(live))))
      switch holder {
      case .keys: try await withKeys(claim, in: domain, body)
      case .slot: try await queue.withSlot(holding: claim, in: domain, body)
      case .slotOfAGroup: try await group.withSlot(holding: claim, in: domain, body)
      }
    }
    try await hold {
      let waiters = (0..<2).map { _ in Task.detached { try await hold {} } }
      await poll { live.alive == 3 }
      waiters[0].cancel()
      await #expect(throws: CancellationError.self) { try await waiters[0].value }
    }
    await #expect(throws: TestError("full")) { try await hold { throw TestError("full") } }
    try await hold {}
    await #expect(throws: CancellationError.self) { try await cancelledTask { try await hold {} }.value }
    await live.none()
    #expect(domain.isUnused)
    group.finish()
    try await group.completed()
  }

  // MARK: Cycles

  @Test func anActorThatRunsInTheQueue_receivesAnError() async throws {
    let scheduler = SerialScheduler(name: "notes")
    let notes = Notes(on: scheduler)
    let error = await #expect(throws: OperationError.self) { try await notes.note("own", in: scheduler.queue) }
    #expect(error?.code == .waitCycle && error?.message.contains("its actor runs in it") == true)
    try await notes.note("other", in: queue)
    try await scheduler.queue.withSlot {}
    // The main thread runs the job of an actor outside of all operations.
    try await Notes(on: .main).note("own", in: .main)
  }

  @Test func aTaskThatAlreadyHasAllSlots_receivesAnError() async throws {
    let group = GroupOperation("pair", maxConcurrentOperationCount: 2).started()
    let error = await #expect(throws: OperationError.self) {
      try await group.withSlot("outer") {
        try await group.withSlot("inner") { try await group.withSlot("third") {} }
      }
    }
    #expect(error?.code == .waitCycle)
    let message =
      "“third” did not run because it would wait forever: it waits for one of the 2 slots of the group “pair”"
    #expect(error?.message.hasPrefix(message) == true && error?.message.contains("taken by “inner”") == true)
    let task = TaskOperation { [queue] in try await queue.withSlot {} }
    await #expect(throws: OperationError(.waitCycle, "")) { try await queue.run(task) }
    // The group is around the task twice, as its place and as the place of the first slot.
    let pair = OperationQueue.limited(to: 2)
    let outer = GroupOperation("outer")
    outer.addOperation(TaskOperation { try await outer.withSlot { try await pair.withSlot {} } })
    try await pair.run(outer)
    try await queue.withSlot {
      try await withThrowingTaskGroup(of: Void.self) { children in
        children.addTask { await #expect(throws: OperationError(.waitCycle, "")) { try await queue.withSlot {} } }
        try await children.waitForAll()
      }
    }
  }
}

extension Notes {
  fileprivate func note(_ text: String, in queue: OperationQueue) async throws {
    try await queue.withSlot("note") { note(text) }
  }
}
