import Foundation
import Operations

/// Slots and keys for the code of a task, compared with an actor that has a count and continuations.
enum TaskBenchmarks {
  private static let count = 80_000

  /// Where the tasks run. The comparison is an actor, to which a caller on another actor must hop.
  private enum Caller: String, CaseIterable {
    case free = ""
    case main = ", on the main actor"
    case actor = ", on an actor"
  }

  static let all = Caller.allCases.flatMap { caller in
    [
      benchmark("slot", caller, tasks: 1, slots, atMost: 2),
      benchmark("slot", caller, tasks: 8, slots, atMost: 3.5),
      benchmark("task-key", caller, tasks: 1, keys, atMost: 1.2),
      benchmark("task-key", caller, tasks: 8, keys, atMost: 1.5),
    ]
  }

  private static func benchmark(
    _ name: String,
    _ caller: Caller,
    tasks: Int,
    _ workload: (Int, Caller) -> Workload,
    atMost limit: Double
  ) -> Benchmark {
    let suffix = (tasks > 1 ? "-contended" : "") + (caller == .free ? "" : "-\(caller)")
    let unit = "\(name), \(tasks > 1 ? "\(tasks) tasks on 2" : "one after another")\(caller.rawValue)"
    let target = caller == .free ? Benchmark.Target.atMost(limit) : .none
    return Benchmark(name + suffix, of: unit, workload(tasks, caller), over: actor(tasks, caller), target)
  }

  private static func slots(_ tasks: Int, _ caller: Caller) -> Workload {
    workload("withSlot", tasks, caller) {
      let queue = OperationQueue()
      queue.maxConcurrentOperationCount = 2
      return { body in try? await queue.withSlot("work") { await body() } }
    }
  }

  private static func keys(_ tasks: Int, _ caller: Caller) -> Workload {
    workload("withKeys", tasks, caller) {
      let domain = ExclusivityDomain()
      return { body in try? await withKeys(.limited("key", to: 2), in: domain) { await body() } }
    }
  }

  private static func actor(_ tasks: Int, _ caller: Caller) -> Workload {
    workload("actor with continuations", tasks, caller) {
      let limit = Limit(of: 2)
      return { body in
        await limit.enter()
        await body()
        await limit.leave()
      }
    }
  }

  /// In the isolation of its caller.
  private typealias Run = nonisolated(nonsending) @Sendable (_ body: () async -> Void) async -> Void

  private static func workload(
    _ name: String,
    _ tasks: Int,
    _ caller: Caller,
    _ make: @escaping @Sendable () -> Run
  ) -> Workload {
    .awaiting(name, units: count) {
      let run = make()
      let own = Owner()
      await withTaskGroup(of: Void.self) { group in
        for _ in 0..<tasks {
          switch caller {
          case .free: group.addTask { await repeatedly(tasks, run) }
          case .main: group.addTask { await onMain(tasks, run) }
          case .actor: group.addTask { await own.work(tasks, run) }
          }
        }
      }
    }
  }

  private static func repeatedly(_ tasks: Int, _ run: Run) async {
    for _ in 0..<count / tasks { await run { if tasks > 1 { await Task.yield() } } }
  }

  @MainActor private static func onMain(_ tasks: Int, _ run: Run) async { await repeatedly(tasks, run) }

  private actor Owner { func work(_ tasks: Int, _ run: Run) async { await repeatedly(tasks, run) } }

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
