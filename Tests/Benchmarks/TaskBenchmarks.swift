import Foundation
import Operations
import Synchronization

/// Slots and keys for the code of a task, compared with an actor, and a lock, that have a count and continuations.
enum TaskBenchmarks {
  /// Where the tasks run. The comparison is an actor, to which a caller on another actor must hop.
  private enum Caller: String, CaseIterable {
    case free = ""
    case main = ", on the main actor"
    case actor = ", on an actor"

    var count: Int { self == .main ? 10_000 : 80_000 }
  }

  static let all =
    byCaller + [
      peer("key", tasks: 1, Limiter.keys, Limiter.semaphore, atMost: 7),
      peer("key-of-100", tasks: 8, Limiter.manyKeys, Limiter.manySemaphores, atMost: 12),
      peer("key-limit", tasks: 8, yields: true, Limiter.keys, Limiter.semaphore, atMost: 1.3),
      peer("group-slot", tasks: 1, Limiter.group, Limiter.actor, atMost: 25),
      peer("group-slot-contended", tasks: 8, yields: true, Limiter.group, Limiter.actor, atMost: 1.5),
    ]

  private static func peer(
    _ name: String,
    tasks: Int,
    yields: Bool = false,
    _ limiter: @escaping @Sendable () -> Limiter,
    _ peer: @escaping @Sendable () -> Limiter,
    atMost limit: Double
  ) -> Benchmark {
    let byHand = workload("by hand", tasks, .free, yields: yields, peer)
    let ours = workload("by the package", tasks, .free, yields: yields, limiter)
    return Benchmark(
      name,
      of: "section\(yields ? " that yields" : ""), \(tasks) tasks",
      ours,
      over: byHand,
      .atMost(limit)
    )
  }

  private static let byCaller = Caller.allCases.flatMap { caller in
    [
      benchmark("slot", caller, tasks: 1, "withSlot", Limiter.slots, atMost: 2),
      benchmark("slot", caller, tasks: 8, "withSlot", Limiter.slots, atMost: 3.5),
      benchmark("task-key", caller, tasks: 1, "withKeys", Limiter.keys, atMost: 1.2),
      benchmark("task-key", caller, tasks: 8, "withKeys", Limiter.keys, atMost: 1.5),
    ]
  }

  private static func benchmark(
    _ name: String,
    _ caller: Caller,
    tasks: Int,
    _ call: String,
    _ limiter: @escaping @Sendable () -> Limiter,
    atMost limit: Double
  ) -> Benchmark {
    let suffix = (tasks > 1 ? "-contended" : "") + (caller == .free ? "" : "-\(caller)")
    let unit = "\(name), \(tasks > 1 ? "\(tasks) tasks on 2" : "one after another")\(caller.rawValue)"
    let target = caller == .free ? Benchmark.Target.atMost(limit) : .none
    let byHand = workload("actor with continuations", tasks, caller, yields: tasks > 1, Limiter.actor)
    let byPackage = workload(call, tasks, caller, yields: tasks > 1, limiter)
    return Benchmark(name + suffix, of: unit, byPackage, over: byHand, target)
  }

  /// What limits the work of tasks. Methods run it rather than closures, in which `#isolation` is not the caller's.
  private enum Limiter {
    case slots(OperationQueue)
    case group(GroupOperation)
    case keys(ExclusivityDomain, [ExclusivityKey])
    case actor(Limit)
    case semaphores([Semaphore])

    static func slots() -> Self {
      let queue = OperationQueue()
      queue.maxConcurrentOperationCount = 2
      return .slots(queue)
    }

    static func group() -> Self { .group(GroupOperation("slots", maxConcurrentOperationCount: 2).started()) }

    static func keys() -> Self { .keys(ExclusivityDomain(), ["key"]) }
    static func manyKeys() -> Self { .keys(ExclusivityDomain(), (0..<100).map { ExclusivityKey("key \($0)") }) }

    static func actor() -> Self { .actor(Limit(of: 2)) }

    static func semaphore() -> Self { .semaphores([Semaphore(of: 2)]) }
    static func manySemaphores() -> Self { .semaphores((0..<100).map { _ in Semaphore(of: 2) }) }

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
    _ caller: Caller,
    yields: Bool,
    _ make: @escaping @Sendable () -> Limiter
  ) -> Workload {
    .awaiting(name, units: caller.count) {
      let limiter = make()
      let (own, count) = (Owner(), caller.count / tasks)
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<tasks {
          switch caller {
          case .free: group.addTask { await repeatedly(count, yields, limiter) }
          case .main: group.addTask { await onMain(count, yields, limiter) }
          case .actor: group.addTask { await own.work(count, yields, limiter) }
          }
        }
      }
    }
  }

  /// Two loops, because a body that may yield leaves its actor even when it does not.
  private static func repeatedly(_ count: Int, _ yields: Bool, _ limiter: Limiter) async {
    if yields {
      for index in 0..<count { await limiter.run(index) { await Task.yield() } }
    } else {
      for index in 0..<count { await limiter.run(index) {} }
    }
  }

  @MainActor private static func onMain(_ count: Int, _ yields: Bool, _ limiter: Limiter) async {
    await repeatedly(count, yields, limiter)
  }

  private actor Owner {
    func work(_ count: Int, _ yields: Bool, _ limiter: Limiter) async { await repeatedly(count, yields, limiter) }
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
