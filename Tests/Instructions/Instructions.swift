import Foundation
import Operations

/// Does one kind of work a number of times, for `.ci/instructions`, which counts the instructions of a unit. Not a part of
/// the benchmarks, because valgrind does not survive an asynchronous `main()` on Linux.
@main
struct Instructions {
  private typealias Work = @Sendable (_ count: Int) async throws -> Void

  private static let all: KeyValuePairs<String, Work> = [
    "task": { count in for index in 0..<count { _ = await Task { index }.value } },
    "task-group": { count in
      await withTaskGroup(of: Int.self) { group in
        for index in 0..<count {
          if index >= 4 { _ = await group.next() }
          group.addTask { index }
        }
      }
    },
    "run-closure": { count in
      let queue = OperationQueue()
      for index in 0..<count { _ = try await queue.run { index } }
    },
    "task-member": { count in try await run(count) { index in TaskOperation { () async in index } } },
    "member": { count in try await run(count) { _ in AsyncBlockOperation { $0.finish() } } },
    "keyed-member": { count in
      try await run(count) { _ in AsyncBlockOperation { $0.finish() }.limited("key", to: 2) }
    },
    "task-chain": { count in
      // Valgrind is so slow that a longer chain would be looked at again and again for waits that can never end.
      for _ in 0..<count / 20 {
        let members = chain((0..<20).map { index in TaskOperation { () async in index } })
        try await OperationQueue().run(GroupOperation(members))
      }
    },
    "group-of-one": { count in
      try await run(count) { index in GroupOperation([TaskOperation { () async in index }]) }
    },
    "keys": { count in for _ in 0..<count { try await withKeys(.exclusive("key")) {} } },
    "keys-contended": { count in
      try await inEightTasks(count) { try await withKeys(.limited("key", to: 2)) { await Task.yield() } }
    },
    "slot": { count in
      try await inGroup { group in for _ in 0..<count { try await group.withSlot {} } }
    },
    "slot-contended": { count in
      try await inGroup { group in try await inEightTasks(count) { try await group.withSlot { await Task.yield() } } }
    },
  ]

  static func main() {
    let arguments = CommandLine.arguments
    guard arguments.count == 3, let count = Int(arguments[2]),
      let work = all.first(where: { $0.key == arguments[1] })?.value
    else { return print(all.map(\.key).joined(separator: "\n")) }
    let end = DispatchSemaphore(value: 0)
    Task.detached {
      do { try await work(count) } catch { fatalError("\(error)") }
      end.signal()
    }
    end.wait()
  }

  private static func run(_ count: Int, _ make: (Int) -> AsyncOperation) async throws {
    try await OperationQueue().run(GroupOperation((0..<count).map(make), maxConcurrentOperationCount: 4))
  }

  private static func inGroup(_ body: (GroupOperation) async throws -> Void) async throws {
    let group = GroupOperation(maxConcurrentOperationCount: 2).started()
    try await body(group)
    group.staysOpen = false
    try await group.completed()
  }

  private static func inEightTasks(_ count: Int, _ body: @escaping @Sendable () async throws -> Void) async throws {
    try await withThrowingTaskGroup { group in
      for _ in 0..<8 { group.addTask { for _ in 0..<count / 8 { try await body() } } }
      try await group.waitForAll()
    }
  }
}
