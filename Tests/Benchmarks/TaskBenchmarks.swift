import Foundation
import Operations
import Synchronization

/// Slots and keys for the code of a task, compared with an actor, and a lock, that have a count and continuations.
enum TaskBenchmarks {
  static let all = [
    benchmark("slot", tasks: 1, .slots(), over: .actor(), atMost: 2),
    benchmark("slot-contended", tasks: 8, yields: true, .slots(), over: .actor(), atMost: 3.5),
    benchmark("task-key", tasks: 1, .keys(), over: .actor(), atMost: 1.2),
    benchmark("task-key-contended", tasks: 8, yields: true, .keys(), over: .actor(), atMost: 1.5),
    benchmark("key", tasks: 1, .keys(), over: .semaphores(), atMost: 7),
    benchmark("key-of-100", tasks: 8, .keys(100), over: .semaphores(100), atMost: 12),
    benchmark("key-limit", tasks: 8, yields: true, .keys(), over: .semaphores(), atMost: 1.3),
    benchmark("group-slot", tasks: 1, .group(), over: .actor(), atMost: 25),
    benchmark("group-slot-contended", tasks: 8, yields: true, .group(), over: .actor(), atMost: 1.5),
  ]

  private static func benchmark(
    _ name: String,
    tasks: Int,
    yields: Bool = false,
    _ limiter: @autoclosure @escaping @Sendable () -> Limiter,
    over peer: @autoclosure @escaping @Sendable () -> Limiter,
    atMost limit: Double
  ) -> Benchmark {
    Benchmark(
      name,
      of: "section\(yields ? " that yields" : ""), \(tasks) tasks",
      workload("by the package", tasks, yields: yields, limiter),
      over: workload("by hand", tasks, yields: yields, peer),
      .atMost(limit)
    )
  }

  private enum Limiter {
    case slots(OperationQueue)
    case group(GroupOperation)
    case keys(ExclusivityDomain, [ExclusivityKey])
    case actor(Limit)
    case semaphores([Semaphore])

    static func slots() -> Self { .slots(.limited(to: 2)) }
    static func group() -> Self { .group(GroupOperation("slots", maxConcurrentOperationCount: 2).started()) }
    static func actor() -> Self { .actor(Limit(of: 2)) }

    static func keys(_ count: Int = 1) -> Self {
      .keys(ExclusivityDomain(), (0..<count).map { ExclusivityKey("key \($0)") })
    }

    static func semaphores(_ count: Int = 1) -> Self { .semaphores((0..<count).map { _ in Semaphore(of: 2) }) }

    nonisolated(nonsending) func run(_ index: Int, _ body: () async -> Void) async {
      switch self {
      case .slots(let queue): try? await queue.withSlot("work") { await body() }
      case .group(let group): try? await group.withSlot("work") { await body() }
      case .keys(let domain, let keys):
        try? await withKeys(.limited(keys[index % keys.count], to: 2), in: domain) { await body() }
      case .semaphores(let semaphores):
        let semaphore = semaphores[index % semaphores.count]
        await semaphore.wait()
        await body()
        semaphore.signal()
      case .actor(let limit):
        await limit.enter()
        await body()
        await limit.leave()
      }
    }
  }

  private static func workload(
    _ name: String,
    _ tasks: Int,
    yields: Bool,
    _ make: @escaping @Sendable () -> Limiter
  ) -> Workload {
    let total = 80_000
    return .awaiting(name, units: total) {
      let limiter = make()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<tasks {
          group.addTask {
            for index in 0..<total / tasks { await limiter.run(index) { if yields { await Task.yield() } } }
          }
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

    func leave() { if waiters.isEmpty { count -= 1 } else { waiters.removeFirst().resume() } }
  }

  private final class Semaphore: Sendable {
    private let state: Mutex<(free: Int, waiters: [CheckedContinuation<Void, Never>])>

    init(of limit: Int) { state = Mutex((limit, [])) }

    nonisolated(nonsending) func wait() async {
      if enter(nil) { return }
      await withCheckedContinuation { if enter($0) { $0.resume() } }
    }

    /// Returns whether the caller may go on. Otherwise the continuation waits, if there is one.
    private func enter(_ continuation: CheckedContinuation<Void, Never>?) -> Bool {
      state.withLock { state in
        if state.free == 0 {
          if let continuation { state.waiters.append(continuation) }
          return false
        }
        state.free -= 1
        return true
      }
    }

    func signal() {
      let next = state.withLock { state in
        if !state.waiters.isEmpty { return state.waiters.removeFirst() as CheckedContinuation? }
        state.free += 1
        return nil
      }
      next?.resume()
    }
  }
}
