import Foundation
import Operations
import Synchronization

/// Members and operations that are tasks, compared with the tasks themselves or with an operation that is written by hand.
enum MemberBenchmarks {
  private static let count = 20_000
  private static let window = "closure, 4 at once"
  private static let awaited = "value awaited, one at a time"

  static let all: [Benchmark] = [
    Benchmark("window", of: window, members("TaskOperation", task), over: windowOfChildren, .atMost(3.5)),
    Benchmark("window-results", of: window, windowOfResults, over: windowOfChildren, .atMost(5)),
    Benchmark("task-chain", of: "task after another", chainOfTasks, over: tasks, .atMost(4.3)),
    Benchmark("retry", of: "member", members("retry", retry), over: members("task operation", task), .atMost(1.5)),
    Benchmark("group-of-one", of: "member, or task", members("group of one", group), over: tasks, .atMost(6.2)),
    Benchmark("group-of-block", of: "member, or task", members("group of a block", block), over: tasks, .atMost(6.2)),
    Benchmark("async-by-hand", of: "operation, 4 at once", .asyncBlocks(count, width: 4), over: byHand, .atMost(1)),
    Benchmark("run-closure", of: awaited, runs, over: tasks, .atMost(5)),
    Benchmark("scheduler-run", of: awaited, schedulerRuns, over: actorRuns, .atMost(1)),
  ]

  private static let tasks = Workload.tasks(count)

  // MARK: Windows

  private static let windowOfChildren = Workload.awaiting("TaskGroup", units: count) {
    await withTaskGroup(of: Int.self) { group in
      for index in 0..<count {
        if index >= 4 { _ = await group.next() }
        group.addTask { index }
      }
    }
  }

  private static let windowOfResults = Workload.awaiting("results(of:atMost:)", units: count) {
    for await _ in OperationQueue().results(of: 0..<count, atMost: 4, { (index: Int) async in index }) {}
  }

  // MARK: Members

  private static let chainOfTasks = Workload.awaiting("TaskOperation ==>, GroupOperation", units: count) {
    let members = chain((0..<count).map { index in TaskOperation { index } })
    try? await OperationQueue().run(GroupOperation(members))
  }

  private static func members(_ name: String, _ make: @escaping @Sendable (Int) -> Operation) -> Workload {
    .awaiting("\(name), GroupOperation", units: count) {
      try? await OperationQueue().run(GroupOperation((0..<count).map(make), maxConcurrentOperationCount: 4))
    }
  }

  private static func task(_ index: Int) -> Operation { TaskOperation { () async in index } }
  private static func retry(_ index: Int) -> Operation { RetryOperation(attempts: 3) { (_: Int) async in index } }
  private static func group(_ index: Int) -> Operation { GroupOperation([task(index)]) }
  private static func block(_: Int) -> Operation { GroupOperation([AsyncBlockOperation { $0.finish() }]) }

  // MARK: Operations of a queue

  private static let byHand = Workload(name: "operation with isExecuting, OperationQueue", units: count) {
    Lifetime.run { lifetime in
      let queue = OperationQueue.limited(to: 4)
      for index in 0..<count {
        let lifetime = lifetime(index)
        queue.addOperation(HandmadeOperation { operation in withExtendedLifetime(lifetime) { operation.finish() } })
      }
    }
  }

  private static let runs = Workload.awaiting("queue.run { }", units: count) {
    let queue = OperationQueue()
    for index in 0..<count { _ = try? await queue.run { index } }
  }

  // MARK: A scheduler

  private static let schedulerRuns = Workload.awaiting("scheduler.run { }", units: count) {
    let scheduler = SerialScheduler(name: "serial")
    for index in 0..<count { _ = try? await scheduler.run { index } }
  }

  private static let actorRuns = Workload.awaiting("task on an actor of a serial DispatchQueue", units: count) {
    let actor = QueueActor()
    for index in 0..<count { _ = await Task { await actor.run { index } }.value }
  }
}

/// As many packages write it.
private final class HandmadeOperation: Operation, @unchecked Sendable {
  private let state = Mutex((isExecuting: false, isFinished: false))
  private let block: @Sendable (HandmadeOperation) -> Void

  init(_ block: @escaping @Sendable (HandmadeOperation) -> Void) { self.block = block }

  override var isAsynchronous: Bool { true }
  override var isExecuting: Bool { state.withLock { $0.isExecuting } }
  override var isFinished: Bool { state.withLock { $0.isFinished } }

  override func start() {
    if isCancelled { return finish() }
    willChangeValue(for: \.isExecuting)
    state.withLock { $0.isExecuting = true }
    didChangeValue(for: \.isExecuting)
    block(self)
  }

  func finish() {
    willChangeValue(for: \.isExecuting)
    willChangeValue(for: \.isFinished)
    state.withLock { $0 = (false, true) }
    didChangeValue(for: \.isExecuting)
    didChangeValue(for: \.isFinished)
  }
}

private final class DispatchExecutor: SerialExecutor {
  private let queue = DispatchQueue(label: "actor")

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedSerialExecutor()) }
  }
}

private actor QueueActor {
  private let executor = DispatchExecutor()
  nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe executor.asUnownedSerialExecutor() }

  func run<T: Sendable>(_ body: @Sendable () -> T) -> T { body() }
}
