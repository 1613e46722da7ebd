import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// Waits of tasks for operations that can end only after the work of the task.
@Suite(.timeLimit(.minutes(5)))
struct TaskWaitTests {
  private enum Wait: CaseIterable {
    case value, completed, results, first

    func end(of operation: ResultOperation<Int>, in queue: OperationQueue) async throws {
      switch self {
      case .value: _ = try await operation.value
      case .completed: try await operation.completed()
      case .results: for await (_, result) in queue.results(of: [operation]) { _ = try result.get() }
      case .first:
        do { _ = try await queue.first(of: [operation]) } catch let error as AggregateError {
          throw error.failures[0].error
        }
      }
    }
  }

  private let queue = OperationQueue()
  private let domain = ExclusivityDomain()

  @Test(arguments: Wait.allCases) private func waitingForADependent_isRefused(_ wait: Wait) async throws {
    let dependent = ResultOperation { 1 }.named("dependent")
    let task = TaskOperation { try await wait.end(of: dependent, in: queue) }.named("task")
    task ==> dependent
    queue.addOperations([task, dependent])
    let error = await #expect(throws: OperationError.self) { try await task.completed() }
    #expect(
      error?.code == .waitCycle
        && error?.message.hasPrefix("“task” would wait forever: it waits for ") == true
        && error?.message.hasSuffix("“dependent”, which waits for “task”.") == true
    )
    await dependent.finished()
  }

  @Test(arguments: Wait.allCases) private func waitingForItself_isRefused(_ wait: Wait) async throws {
    let own = Locked<ResultOperation<Int>?>(nil)
    let task = TaskOperation<Int> {
      if let own = own.withLock({ $0 }) { try await wait.end(of: own, in: queue) }
      return 1
    }
    own.withLock { $0 = task }
    await #expect(throws: OperationError(.waitCycle, "")) { try await queue.run(task) }
    own.withLock { $0 = nil }
  }

  /// The members of a large group are not read.
  @Test(arguments: [0, 300]) func waitingForTheGroupAroundIt_isRefused(otherCount: Int) async {
    let (group, others) = (GroupOperation("group"), (0..<otherCount).map { _ in AsyncOperation() })
    let member = TaskOperation { [unowned group] in try await group.completed() }.named("member")
    [member] ==> others
    group.addOperations([member] + others)
    let error = await #expect(throws: AggregateError.self) { try await queue.run(group) }
    #expect(error?.failures.map(\.path) == [["group", "member"]])
    #expect((error?.failures.first?.error as? OperationError)?.code == .waitCycle)
  }

  @Test func runOnAQueueWhoseSlotsTheWorkOccupies_isRefused() async throws {
    queue.maxConcurrentOperationCount = 2
    let never = ResultOperation { 3 }.named("never")
    let outer = TaskOperation { try await queue.run { try await queue.run(never) } }
    let error = await #expect(throws: OperationError.self) { try await queue.run(outer) }
    #expect(error?.code == .waitCycle)
    // The wait that began last gives way, which on a busy machine may be that of the outer work.
    let cycle = "waits for “never”, which waits for one of the 2 slots of its queue"
    #expect(error?.message.contains(cycle) == true, "\(error?.message ?? "")")
    await never.finished()
    await queue.drained()
    queue.maxConcurrentOperationCount = 3
    #expect(try await queue.run { try await queue.run { try await queue.run { 3 } } } == 3)
  }

  @Test func operationsThatWaitForEachOther_areRefusedOnce() async {
    let (begun, pair) = (Gate(), Locked<[TaskOperation<Int>]>([]))
    let operations = (0..<2).map { index in
      TaskOperation<Int> {
        if index == 0 { begun.open() } else { await begun.opened() }
        return try await pair.withLock { $0[1 - index] }.value
      }
    }
    pair.withLock { $0 = operations }
    queue.addOperations(operations)
    for operation in operations {
      await #expect(throws: OperationError(.waitCycle, "")) { _ = try await operation.value }
    }
    pair.withLock { $0 = [] }
  }

  @Test func sharedRunsThatRunEachOther_areRefused() async {
    @Sendable func load(_ key: ExclusivityKey, then other: ExclusivityKey) async throws -> Int {
      try await queue.run(sharing: key, in: domain) { TaskOperation { try await load(other, then: key) } }
    }
    await #expect(throws: OperationError(.waitCycle, "")) { try await load("a", then: "b") }
    await #expect(throws: OperationError(.waitCycle, "")) { try await load("c", then: "c") }
    let error = await #expect(throws: OperationError.self) {
      try await withKeys(.exclusive("a"), in: domain, name: "holder") { try await load("a", then: "b") }
    }
    #expect(error?.code == .waitCycle && error?.message.hasPrefix("“holder” would wait forever") == true)
  }

  @Test func aCallerThatIsRefused_leavesASharedRunToTheOthers() async throws {
    queue.maxConcurrentOperationCount = 1
    let joined = Locked<SharedRun<Int>?>(nil)
    let outer = TaskOperation {
      try await queue.run(sharing: "key", in: domain) {
        let run = domain.sharedRuns.withLock { $0["key"] as? SharedRun<Int> }
        if run?.enter() == true { joined.withLock { $0 = run } }
        return ResultOperation { 3 }
      }
    }
    await #expect(throws: OperationError(.waitCycle, "")) { try await queue.run(outer) }
    let other = try #require(joined.withLock { $0 })
    #expect(try await other.wait() == 3)
  }

  @Test(arguments: [false, true])
  func waitingForTheNextHolderOfItsOwnKey_isRefused(dependencyIsHeld: Bool) async throws {
    let (next, held) = (ResultOperation { 1 }.exclusive("key", in: domain), HeldOperation())
    if dependencyIsHeld { held ==> next }
    let holder = TaskOperation {
      try await withKeys(.exclusive("key"), in: domain) {
        queue.addOperations([held, next])
        return try await next.value
      }
    }
    let end = Task { try await queue.run(holder) }
    await held.finished(opening: held.gate)
    await #expect(throws: OperationError(.waitCycle, "")) { _ = try await end.value }
    await next.finished()
    // It may have begun to wait after the task, when the dependency ended.
    #expect(next.isSuccessful || dependencyIsHeld && next.isCancelled)
  }

  @Test(arguments: [false, true])
  func waitingForAMemberThatNeedsItsSlot_isRefused(dependencyIsHeld: Bool) async throws {
    let (next, held, group) = (ResultOperation { 1 }.named("next"), HeldOperation(), GroupOperation())
    if dependencyIsHeld { held ==> next }
    let task = TaskOperation { try await next.completed() }
    group.maxConcurrentOperationCount = 1
    group.addOperations([task, next])
    queue.addOperations([held, group])
    await held.finished(opening: held.gate)
    await #expect(throws: OperationError(.waitCycle, "")) { try await task.completed() }
    await next.finished()
    #expect(next.isSuccessful || dependencyIsHeld && next.isCancelled)
  }

  /// It can end until another holder has left.
  @Test func waitingForAStrongerClaimToItsOwnKey_isRefused() async throws {
    let other = await queue.begin(HeldOperation().shared("key", in: domain))
    let next = ResultOperation { 1 }.exclusive("key", in: domain)
    let holder = TaskOperation {
      queue.addOperation(next)
      return try await next.value
    }
    let end = Task { try await queue.run(holder.shared("key", in: domain)) }
    await other.finished(opening: other.gate)
    await #expect(throws: OperationError(.waitCycle, "")) { _ = try await end.value }
    #expect(try await next.value == 1)
  }

  @Test(arguments: [false, true], [(false, false), (false, true), (true, false), (true, true)])
  func waitingForATaskThatNeedsItsKey_isRefused(claimsFirst: Bool, areOperations: (holder: Bool, claimant: Bool)) async
  {
    let (claims, queue, domain) = (Gate(), queue, domain)
    let next = TaskOperation {
      await claims.opened()
      if areOperations.claimant { return try await queue.run(ResultOperation { 1 }.exclusive("key", in: domain)) }
      return try await withKeys(.exclusive("key"), in: domain) { 1 }
    }
    queue.addOperation(next.named("next"))
    let work = { @Sendable in
      if claimsFirst {
        claims.open()
        await poll { domain.waiting(for: "key").count == 1 }
      }
      return try await next.value
    }
    let run = Task {
      if !areOperations.holder {
        return try await withKeys(.exclusive("key"), in: domain, name: "holder") { try await work() }
      }
      return try await queue.run(TaskOperation { try await work() }.named("holder").exclusive("key", in: domain))
    }
    if !claimsFirst {
      await poll { next.core.withLock { $0.waiters.count == 1 } }
      claims.open()
    }
    let error = await #expect(throws: OperationError.self) { _ = try await run.value }
    #expect(error?.code == .waitCycle && error?.message.contains("“next”") == true)
    await next.finished()
  }

  @Test func waitingForAReaderBehindAWriterOfItsOwnKey_isRefused() async throws {
    let writer = ResultOperation { 1 }.exclusive("key", in: domain)
    let reader = ResultOperation { 1 }.shared("key", in: domain)
    let holder = TaskOperation {
      queue.addOperations([writer, reader])
      return try await reader.value
    }
    await #expect(throws: OperationError(.waitCycle, "")) { try await queue.run(holder.shared("key", in: domain)) }
    #expect(try await reader.value == 1)
  }

  @Test func aTaskThatOutlivesItsOperation_waitsForTheKeyThatItTookItself() async throws {
    let (next, ended) = (ResultOperation { 1 }.exclusive("key", in: domain), Gate())
    let first = TaskOperation {
      Task {
        await ended.opened()
        return try await withKeys(.exclusive("key"), in: domain) {
          queue.addOperation(next)
          return try await next.value
        }
      }
    }
    let task = try await queue.run(first)
    ended.open()
    await #expect(throws: OperationError(.waitCycle, "")) { _ = try await task.value }
    #expect(try await next.value == 1)
  }

  // MARK: Not refused

  @Test func aDelayNeedsNoSlotAfterItsPause() async throws {
    let (clock, delay, group) = (ManualClock(), DelayOperation(.seconds(1)), GroupOperation())
    let task = TaskOperation { try await delay.completed() }
    (group.clock, group.maxConcurrentOperationCount) = (clock, 1)
    group.addOperations([delay, task])
    queue.addOperation(group)
    await clock.waitForSleepers(1)
    await poll { task.isFinished || task.isAwaiting }
    clock.advance(by: .seconds(1))
    try await task.completed()
  }

  @Test func aTaskOfAnEndedBody_doesNotHoldTheKeyThatOthersStillUse() async throws {
    let (user, ended) = (HeldOperation().exclusive("key", in: domain), Gate())
    let next = ResultOperation { 1 }.exclusive("key", in: domain)
    let task = try await withKeys(.exclusive("key"), in: domain) {
      Task { try await queue.run(user) }
      await user.begun.opened()
      queue.addOperation(next)
      return Task {
        await ended.opened()
        return try await next.value
      }
    }
    ended.open()
    await lookForCycles { $0.isWait(for: next) }
    user.gate.open()
    #expect(try await task.value == 1)
  }

  @Test func anOperationThatNotifiesItsObserversOfItsEnd_occupiesNoSlot() async throws {
    let (first, checked, values) = (ResultOperation { 1 }, Gate(), Journal<Int?>())
    queue.maxConcurrentOperationCount = 1
    first.onFinish { [queue] _ in
      // As in a task that the operation has made.
      $currentWork.withValue(first.ownWork) {
        _ = Task {
          values.write(
            try? await queue.run {
              return 2
            }
          )
          checked.open()
        }
      }
      checked.pass()
    }
    queue.addOperation(first)
    #expect(await values.all(1) == [2])
  }

  @Test func waitingForAKeyThatAnotherHolderReleases_isNotRefused() async throws {
    let other = await queue.begin(HeldOperation().limited("key", to: 2, in: domain))
    let next = ResultOperation { 1 }.limited("key", to: 2, in: domain)
    let holder = TaskOperation {
      queue.addOperation(next)
      return try await next.value
    }
    queue.addOperation(holder.limited("key", to: 2, in: domain))
    await poll { domain.waiting(for: "key").count == 1 && holder.isAwaiting }
    other.gate.open()
    #expect(try await holder.value == 1)
  }

  @Test func waitsThatEnd_areNotRefused() async throws {
    let (held, ended, group) = (HeldOperation(), Gate(), GroupOperation("group"))
    let last = ResultOperation { 1 }.waits(for: held)
    group.addOperation(
      TaskOperation { [unowned group] in
        // The work of a detached task is no part of the member.
        Task.detached {
          try? await group.completed()
          ended.open()
        }
        return try await last.value + queue.run { try await queue.run { 1 } }
      }
    )
    queue.addOperations([held, last])
    await queue.add(group, until: held.begun)
    held.gate.open()
    try await group.completed()
    await ended.opened()
  }

  @Test func aReportNamesWhatTheTaskOfAnOperationWaitsFor() async {
    let held = HeldOperation().named("held")
    let task = TaskOperation { await held.finished() }.named("task")
    queue.addOperations([held, task])
    await poll { task.isAwaiting }
    let entry = queue.stallReport().entries.first { $0.operation == "task" }
    #expect(entry?.waitsFor == ["held"] && entry?.description.hasPrefix("“task” waits for “held”, which") == true)
    await task.finished(opening: held.gate)
    #expect(task.isSuccessful)
  }
}

/// Searches for waits that cannot end, once a wait has begun.
func lookForCycles(until hasBegun: @escaping @Sendable (TaskWait) -> Bool) async {
  await poll { WaitWatch.waits.contains(where: hasBegun) }
  _ = WaitSnapshot(waits: WaitWatch.waits).giveWay()
}

extension TaskWait {
  func isWait(for other: Operation) -> Bool {
    if case .operation(let operation) = target { operation === other } else { false }
  }
}

extension AsyncOperation {
  /// Whether a task of the operation waits for something.
  var isAwaiting: Bool { WaitWatch.waits.contains { $0.work === core.withLock { $0.work } } }
}
