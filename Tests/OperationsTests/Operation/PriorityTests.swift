import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// The priority that a task lends to the operations that it waits for. The `queuePriority` of an operation rises last.
@Suite(.timeLimit(.minutes(5)))
struct PriorityTests {
  private let queue = OperationQueue()
  private let journal = Journal<TaskPriority>()
  private let domain = ExclusivityDomain()
  private let holder = HeldOperation()

  /// Lets the holder take the key for which the others wait.
  private func hold() async { await queue.begin(holder.exclusive("key", in: domain)) }

  /// Writes its priority when the gate has been opened.
  private func task(_ begun: Gate? = nil, until gate: Gate? = nil) -> TaskOperation<Void> {
    TaskOperation(priority: .utility) {
      begun?.open()
      await gate?.opened()
      journal.write(Task.currentPriority)
    }
  }

  @Test(arguments: ["completed", "value", "a rise during the wait"])
  func aTaskLendsItsPriority_whileTheBodyRuns(by means: String) async throws {
    let (begun, gate) = (Gate(), Gate())
    let operation = await queue.add(task(begun, until: gate), until: begun)
    // It can pass a priority to its task now, which may have begun before.
    await poll { operation.core.withLock { $0.task != nil } }
    let rises = means == "a rise during the wait"
    let waiter = Task(priority: rises ? .utility : .high) {
      if means == "value" { try await operation.value } else { try await operation.completed() }
    }
    await poll { operation.core.withLock { $0.waiters.count } == 1 }
    if rises {
      guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return gate.open() }
      waiter.escalatePriority(to: .high)
    }
    await poll { operation.queuePriority == .high }
    try await waiter.value(opening: gate)
    #expect(journal.entries == [.high])
  }

  @Test func itReachesWhatTheOperationWaitsFor() async throws {
    await hold()
    let (first, retry) = (task(), RetryOperation(attempts: 2) { _ in task() })
    let inner = GroupOperation([retry, task().exclusive("key", in: domain)])
    let last = GroupOperation([inner])
    first ==> last
    let waiter = Task(priority: .high) { try await queue.run(last) }
    await poll { retry.isFinished && domain.waiting(for: "key").count == 1 }
    #expect(inner.queuePriority == .high && last.queuePriority == .high)
    try await waiter.value(opening: holder.gate)
    #expect(journal.entries == [.high, .high, .high])
  }

  private enum Wait: CaseIterable { case keys, slot, run }

  /// The next holders go before the waiter that lends its priority, because their `queuePriority` is higher.
  @Test(arguments: Wait.allCases) private func itReachesTheHolderOfAKeyAndTheNextOnes(_ wait: Wait) async throws {
    await hold()
    let next = (0..<2).map { _ in
      TaskOperation(priority: .utility) {
        while Task.currentPriority < .high, !Task.isCancelled { await Task.yield() }
      }
    }
    for operation in next { operation.exclusive("key", in: domain).queuePriority = .veryHigh }
    // In a group, because no waiter passes a member that has been given its keys and waits for a thread.
    let group = GroupOperation(next).started()
    let waiter = Task(priority: .high) {
      switch wait {
      case .keys: try await withKeys(.exclusive("key"), in: domain) {}
      case .slot: try await queue.withSlot(holding: .exclusive("key"), in: domain) {}
      case .run: try await queue.run(AsyncOperation().exclusive("key", in: domain))
      }
    }
    await poll { domain.waiting(for: "key").count == 3 && holder.queuePriority == .high }
    try await waiter.value(opening: holder.gate)
    #expect(next.allSatisfy { $0.isSuccessful })
    group.finish()
  }

  // MARK: The order of waiters

  private let names = Journal<String>()

  @Test(arguments: [false, true])
  func waitersOfAKey_executeInOrderOfPriorityThenOfArrival(isRaised: Bool) async {
    await hold()
    let priorities: [Operation.QueuePriority] = [.low, .normal, .high, .veryLow, .normal, .veryHigh]
    let waiters = priorities.indices.map { NoteOperation("\($0)", names).exclusive("key", in: domain) }
    for (waiter, priority) in zip(waiters, priorities) { waiter.queuePriority = priority }
    queue.addOperations(waiters)
    await poll { domain.waiting(for: "key").count == waiters.count }
    if isRaised {
      waiters[3].queuePriority = .veryHigh
      waiters[0].escalatePriority(to: .high)
    }
    holder.gate.open()
    for waiter in waiters { await waiter.finished() }
    #expect(names.entries.joined() == (isRaised ? "350214" : "521403"))
  }

  /// Adds a task that waits for a key as the last of `count`, and then writes its name.
  private func waiter(_ name: String, _ priority: TaskPriority, as count: Int) async -> Task<Void, any Error> {
    let task = Task(priority: priority) { [domain, names] in
      try await withKeys(.exclusive("key"), in: domain, name: name) { names.write(name) }
    }
    await poll { domain.waiting(for: "key").count == count }
    return task
  }

  @Test func tasksThatWaitForAKey_runInOrderOfPriorityThenOfArrival() async {
    await hold()
    queue.addOperation(NoteOperation("operation", names).exclusive("key", in: domain))
    let priorities: [TaskPriority] = [.low, .medium, .high, .low, .medium, .high]
    for (index, priority) in priorities.enumerated() { _ = await waiter("\(index)", priority, as: index + 2) }
    holder.gate.open()
    #expect(await names.all(7) == ["2", "5", "operation", "1", "4", "0", "3"])
  }

  @Test func aTaskWhosePriorityRises_movesUp() async {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
    await hold()
    _ = await waiter("first", .low, as: 1)
    let second = await waiter("second", .low, as: 2)
    second.escalatePriority(to: .high)
    await poll { holder.queuePriority == .high }
    holder.gate.open()
    #expect(await names.all(2) == ["second", "first"])
  }

  /// Its priority rises when it is read for the first time, as if another thread raised it then.
  private final class RisingOperation: AsyncOperation, @unchecked Sendable {
    override var queuePriority: QueuePriority {
      get {
        defer { super.queuePriority = .high }
        return super.queuePriority
      }
      set { super.queuePriority = newValue }
    }
  }

  @Test(arguments: ["at a key", "in a group", "in a group, behind another member"])
  func anOperationWhosePriorityRisesDuringItsArrival_movesUp(_ place: String) async {
    await hold()
    let (first, rising) = (NoteOperation("first", names), RisingOperation())
    rising.addObserver(OperationObserver(didStart: { [names] _ in names.write("rising") }))
    let group = GroupOperation("group", maxConcurrentOperationCount: 1).started()
    switch place {
    case "at a key":
      for operation in [first, rising] { queue.addOperation(operation.exclusive("key", in: domain)) }
    case "in a group":
      group.isSuspended = true
      group.addOperations([first, rising])
      group.isSuspended = false
    default:
      let held = HeldOperation()
      held ==> [first, rising]
      group.addOperations([held, first, rising])
      held.gate.open()
    }
    holder.gate.open()
    #expect(await names.all(2) == ["rising", "first"])
    group.finish()
  }

  // MARK: Lending

  @Test(arguments: [false, true])
  func aTaskThatWaitsForASlot_lendsItItsPriority(inAGroup: Bool) async {
    let (queue, held) = (OperationQueue.limited(to: 1), HeldOperation())
    let group = GroupOperation("group", maxConcurrentOperationCount: 1).started()
    if inAGroup { group.addOperation(held) } else { queue.addOperation(held) }
    await held.begun.opened()
    var waiting: [Operation] { inAGroup ? group.operations(named: "slot") : queue.operations(named: "slot") }
    var last = Task<Void, any Error> {}
    for (index, priority) in [TaskPriority.medium, .medium, .high, .medium].enumerated() {
      last = Task(priority: priority) { [names] in
        let body = { names.write("\(index)") }
        if inAGroup { try await group.withSlot("slot", body) } else { try await queue.withSlot("slot", body) }
      }
      await poll { waiting.count == index + 1 }
    }
    var isRaised = false
    if inAGroup, #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
      last.escalatePriority(to: .high)
      await poll { waiting.count { $0.queuePriority == .high } == 2 }
      isRaised = true
    }
    held.gate.open()
    #expect(await names.all(4).joined() == (isRaised ? "2301" : "2013"))
  }

  @Test func aLaterCallerOfASharedRun_lendsItsPriority() async throws {
    let first = Task(priority: .medium) { try await queue.run(sharing: "key", in: domain) { holder } }
    await holder.begun.opened()
    let second = Task(priority: .high) { try await queue.run(sharing: "key", in: domain) { holder } }
    await poll { holder.queuePriority == .high }
    holder.gate.open()
    for caller in [first, second] { try await caller.value }
  }

  @Test func itNeverFalls_andMembersAddedLaterHaveIt() {
    let (member, later) = (AsyncOperation(), AsyncOperation())
    let group = GroupOperation([member])
    member.queuePriority = .veryHigh
    group.escalatePriority(to: .high)
    group.escalatePriority(to: .low)
    #expect(group.core.withLock { $0.lent } == TaskPriority.high.rawValue)
    #expect(group.queuePriority == .high && member.queuePriority == .veryHigh)
    group.addOperation(later)
    #expect(later.queuePriority == .high)
    let usual = AsyncOperation()
    usual.escalatePriority(to: .medium)
    #expect(usual.core.withLock { $0.lent } == 0 && usual.queuePriority == .normal)
  }
}
