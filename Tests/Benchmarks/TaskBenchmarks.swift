import Foundation
import Operations

/// Slots and keys for the code of a task, compared with an actor that has a count and continuations.
enum TaskBenchmarks {
  /// Where the tasks run. The comparison is an actor, to which a caller on another actor must hop.
  private enum Caller: String, CaseIterable {
    case free = ""
    case main = ", on the main actor"
    case actor = ", on an actor"

    var count: Int { self == .main ? 10_000 : 80_000 }
  }

  static let all = Caller.allCases.flatMap { caller in
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
    let byHand = workload("actor with continuations", tasks, caller, Limiter.actor)
    return Benchmark(name + suffix, of: unit, workload(call, tasks, caller, limiter), over: byHand, target)
  }

  /// What limits the work of tasks. Methods run it rather than closures, in which `#isolation` is not the caller's.
  private enum Limiter {
    case slots(OperationQueue)
    case keys(ExclusivityDomain)
    case actor(Limit)

    static func slots() -> Self {
      let queue = OperationQueue()
      queue.maxConcurrentOperationCount = 2
      return .slots(queue)
    }

    static func keys() -> Self { .keys(ExclusivityDomain()) }

    static func actor() -> Self { .actor(Limit(of: 2)) }

    nonisolated(nonsending) func run(_ body: () async -> Void) async {
      switch self {
      case .slots(let queue): try? await queue.withSlot("work") { await body() }
      case .keys(let domain): try? await withKeys(.limited("key", to: 2), in: domain) { await body() }
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
    _ make: @escaping @Sendable () -> Limiter
  ) -> Workload {
    .awaiting(name, units: caller.count) {
      let limiter = make()
      let (own, count) = (Owner(), caller.count / tasks)
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<tasks {
          switch caller {
          case .free: group.addTask { await repeatedly(count, tasks > 1, limiter) }
          case .main: group.addTask { await onMain(count, tasks > 1, limiter) }
          case .actor: group.addTask { await own.work(count, tasks > 1, limiter) }
          }
        }
      }
    }
  }

  /// Two loops, because a body that may yield leaves its actor even when it does not.
  private static func repeatedly(_ count: Int, _ yields: Bool, _ limiter: Limiter) async {
    if yields {
      for _ in 0..<count { await limiter.run { await Task.yield() } }
    } else {
      for _ in 0..<count { await limiter.run {} }
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
}
