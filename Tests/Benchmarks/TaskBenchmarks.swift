import Foundation
import Operations

/// Slots and keys for the code of a task, compared with an actor that has a count and continuations.
enum TaskBenchmarks {
  private static let count = 80_000

  static let all: [Benchmark] = [
    Benchmark("slot", of: "slot, one after another", slots(tasks: 1), over: actor(tasks: 1), .atMost(2)),
    Benchmark("slot-contended", of: "slot, 8 tasks on 2", slots(tasks: 8), over: actor(tasks: 8), .atMost(3.5)),
    Benchmark("task-key", of: "key, one after another", keys(tasks: 1), over: actor(tasks: 1), .atMost(1.2)),
    Benchmark("task-key-contended", of: "key, 8 tasks on 2", keys(tasks: 8), over: actor(tasks: 8), .atMost(1.5)),
  ]

  private static func slots(tasks: Int) -> Workload {
    workload("withSlot", tasks) {
      let queue = OperationQueue()
      queue.maxConcurrentOperationCount = 2
      return { body in try? await queue.withSlot("work") { await body() } }
    }
  }

  private static func keys(tasks: Int) -> Workload {
    workload("withKeys", tasks) {
      let domain = ExclusivityDomain()
      return { body in try? await withKeys(.limited("key", to: 2), in: domain) { await body() } }
    }
  }

  private static func actor(tasks: Int) -> Workload {
    workload("actor with continuations", tasks) {
      let limit = Limit(of: 2)
      return { body in
        await limit.enter()
        await body()
        await limit.leave()
      }
    }
  }

  private typealias Run = @Sendable (_ body: () async -> Void) async -> Void

  private static func workload(_ name: String, _ tasks: Int, _ make: @escaping @Sendable () -> Run) -> Workload {
    .awaiting(name, units: count) {
      let run = make()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<tasks {
          group.addTask { for _ in 0..<count / tasks { await run { if tasks > 1 { await Task.yield() } } } }
        }
      }
    }
  }

  private actor Limit {
    private let limit: Int
    private var count = 0
    private var waiters: [CheckedContinuation<Void, Never>] = []

    init(of limit: Int) { self.limit = limit }

    func enter() async {
      if count < limit { count += 1 } else { await withCheckedContinuation { waiters.append($0) } }
    }

    func leave() {
      if waiters.isEmpty { count -= 1 } else { waiters.removeFirst().resume() }
    }
  }
}
