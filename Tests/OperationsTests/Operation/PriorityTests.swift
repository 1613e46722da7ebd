import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

/// The priority that a task lends to the operations that it waits for. The `queuePriority` of an operation rises last.
@Suite(.timeLimit(.minutes(5)))
struct PriorityTests {
  private let queue = OperationQueue()
  private let journal = Journal<TaskPriority>()

  /// Writes its priority when the gate has been opened.
  private func task(_ begun: Gate? = nil, until gate: Gate? = nil) -> TaskOperation<Void> {
    TaskOperation(priority: .utility) {
      begun?.open()
      await gate?.opened()
      journal.write(Task.currentPriority)
    }
  }

  @Test func aTaskLendsItsPriority_beforeTheStart() async throws {
    try await Task(priority: .high) { try await queue.run(task()) }.value
    #expect(journal.entries == [.high])
  }

  @Test(arguments: ["completed", "value"])
  func aTaskLendsItsPriority_whileTheBodyRuns(by method: String) async throws {
    let (begun, gate) = (Gate(), Gate())
    let operation = task(begun, until: gate)
    await queue.add(operation, until: begun)
    let waiter = Task(priority: .high) {
      if method == "value" { try await operation.value } else { try await operation.completed() }
    }
    await poll { operation.queuePriority == .high }
    gate.open()
    try await waiter.value
    #expect(journal.entries == [.high])
  }

  @Test func aPriorityThatRisesDuringTheWait_isLentAsWell() async throws {
    guard #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else { return }
    let (begun, gate) = (Gate(), Gate())
    let operation = task(begun, until: gate)
    let waiter = Task(priority: .utility) { try await queue.run(operation) }
    await begun.opened()
    waiter.escalatePriority(to: .high)
    await poll { operation.queuePriority == .high }
    gate.open()
    try await waiter.value
    #expect(journal.entries == [.high])
  }

  @Test func itReachesWhatTheOperationWaitsFor() async throws {
    let domain = ExclusivityDomain()
    let holder = HeldOperation().exclusive("key", in: domain)
    await queue.add(holder, until: holder.begun)
    let first = task()
    let retry = RetryOperation(attempts: 2) { _ in task() }
    let inner = GroupOperation([retry, task().exclusive("key", in: domain)])
    let last = GroupOperation([inner])
    first ==> last
    let waiter = Task(priority: .high) { try await queue.run(last) }
    await poll { retry.isFinished && domain.waiting(for: "key").count == 1 }
    #expect(inner.queuePriority == .high && last.queuePriority == .high)
    holder.gate.open()
    try await waiter.value
    #expect(journal.entries == [.high, .high, .high])
  }

  private enum Wait: CaseIterable { case keys, slot, run }

  @Test(arguments: Wait.allCases) private func itReachesTheHolderOfAKey(_ wait: Wait) async throws {
    let domain = ExclusivityDomain()
    let (begun, gate) = (Gate(), Gate())
    let holder = task(begun, until: gate).exclusive("key", in: domain)
    await queue.add(holder, until: begun)
    let waiter = Task(priority: .high) {
      switch wait {
      case .keys: try await withKeys(.exclusive("key"), in: domain) {}
      case .slot: try await queue.withSlot(holding: .exclusive("key"), in: domain) {}
      case .run: try await queue.run(AsyncOperation().exclusive("key", in: domain))
      }
    }
    await poll { holder.queuePriority == .high }
    gate.open()
    try await waiter.value
    #expect(journal.entries == [.high])
  }

  @Test func aLaterCallerOfASharedRun_lendsItsPriority() async throws {
    let (domain, held) = (ExclusivityDomain(), HeldOperation())
    let first = Task(priority: .medium) { try await queue.run(sharing: "key", in: domain) { held } }
    await held.begun.opened()
    let second = Task(priority: .high) { try await queue.run(sharing: "key", in: domain) { held } }
    await poll { held.lentPriority == .high }
    held.gate.open()
    for caller in [first, second] { try await caller.value }
  }

  @Test func itNeverFalls_andMembersAddedLaterHaveIt() {
    let (member, later) = (AsyncOperation(), AsyncOperation())
    let group = GroupOperation([member])
    member.queuePriority = .veryHigh
    group.escalatePriority(to: .high)
    group.escalatePriority(to: .low)
    #expect(group.lentPriority == .high && group.queuePriority == .high && member.queuePriority == .veryHigh)
    group.addOperation(later)
    #expect(later.queuePriority == .high)
    let usual = AsyncOperation()
    usual.escalatePriority(to: .medium)
    #expect(usual.lentPriority == nil && usual.queuePriority == .normal)
  }
}
