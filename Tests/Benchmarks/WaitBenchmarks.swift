import Foundation
import Operations

/// Waits of tasks that run inside operations, keys and slots.
enum WaitBenchmarks {
  private typealias Step = @Sendable (Int, _ next: () async throws -> Void) async throws -> Void

  static let all: [Benchmark] = [
    Benchmark(
      "waits-in-work",
      of: "wait of 10000 that end after 200 ms",
      waits("in an operation", 10_000) { operation in Task { await operation.finished() } },
      over: waits("in a detached task", 10_000) { operation in .detached { await operation.finished() } },
      .atMost(1.1)
    ),
    .growth("keys-crossing", "pairs of tasks that wait for each other's keys", of: 500) { count in
      let domain = ExclusivityDomain()
      startTasks(count) { pair in
        let keys = [ExclusivityKey("\(pair)"), ExclusivityKey("\(-1 - pair)")]
        let (held, continuation) = AsyncStream.makeStream(of: Void.self)
        @Sendable func cross(_ first: Int, _ meet: () async -> Void) async throws {
          try await withKeys(.exclusive(keys[first]), in: domain) {
            await meet()
            try await withKeys(.exclusive(keys[1 - first]), in: domain) {}
          }
        }
        async let other: Void = cross(1) { continuation.finish() }
        _ = try? await cross(0) { for await _ in held {} }
        _ = try? await other
      }
      .wait()
    },
    nesting("keys-nested", "sections inside each other, each with a key of its own") { _ in
      let domain = ExclusivityDomain()
      return { try await withKeys(.exclusive(ExclusivityKey("\($0)")), in: domain, $1) }
    },
    nesting("keys-nested-shared", "sections inside each other that share a key") { _ in
      let domain = ExclusivityDomain()
      return { try await withKeys(.shared("key"), in: domain, $1) }
    },
    nesting("slots-nested", "slots inside each other, each of a group of its own") { count in
      let groups = (0..<count).map { _ in GroupOperation([], maxConcurrentOperationCount: 1).started() }
      return { try await groups[$0].withSlot(nil, $1) }
    },
    .growth("runs-nested", "operations run inside each other, each in a queue of its own", of: 250) { count in
      let queues = (0..<count).map { _ in OperationQueue() }
      @Sendable func run(_ index: Int) async throws {
        if index < count { try await queues[index].run { try await run(index + 1) } }
      }
      startTasks(1) { _ in try await run(0) }.wait()
    },
  ]

  /// Starts a task in each of some operations, which waits for another operation.
  private static func waits(
    _ name: String,
    _ count: Int,
    _ start: @escaping @Sendable (AsyncOperation) -> Task<Void, Never>
  ) -> Workload {
    Workload(name: name, units: count) {
      let members = (0..<count).map { _ in
        TaskOperation {
          let delay = DelayOperation(.milliseconds(200))
          delay.start()
          await start(delay).value
        }
      }
      run(GroupOperation(members))
    }
  }

  private static func nesting(_ name: String, _ unit: String, _ make: @escaping @Sendable (Int) -> Step) -> Benchmark {
    .growth(name, unit, of: 250) { count in
      let step = make(count)
      @Sendable func enter(_ index: Int) async throws {
        if index < count { try await step(index) { try await enter(index + 1) } }
      }
      startTasks(1) { _ in try await enter(0) }.wait()
    }
  }
}
