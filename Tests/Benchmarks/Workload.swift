import Foundation
import Operations

struct Workload: Sendable {
  let name: String
  /// Returns the time a unit takes, in nanoseconds.
  let measure: @Sendable (_ round: Int) -> Double
}

extension Workload {
  /// Creates a workload that is timed: `run` does the work of `units` operations, and returns when all of it has been torn
  /// down.
  init(name: String, units: Int, run: @escaping @Sendable () -> Void) {
    self.init(name: name) { _ in
      let start = ContinuousClock.now
      run()
      return (ContinuousClock.now - start) / .nanoseconds(units)
    }
  }
}

/// Held by every closure of a workload. When it is released, so is the last closure.
///
/// That, not the finish of the last operation, is the end of a round; teardown on a queue's thread would otherwise land
/// in the next sample. It comes in shards, or the threads would spend their time counting references to one object.
final class Lifetime: Sendable {
  private let end: DispatchGroup

  init(_ end: DispatchGroup) {
    self.end = end
    end.enter()
  }

  deinit { end.leave() }

  /// Calls `body` with lifetimes to hold, for the operation of each index, and returns when nothing holds any of them.
  static func run(_ body: (_ lifetime: (Int) -> Lifetime) -> Void) {
    let end = DispatchGroup()
    hold(until: end, body)
    end.wait()
  }

  /// A function of its own, because a debug build releases the lifetimes only when it returns.
  private static func hold(until end: DispatchGroup, _ body: (_ lifetime: (Int) -> Lifetime) -> Void) {
    let shards = (0..<64).map { _ in Lifetime(end) }
    body { shards[$0 % shards.count] }
  }
}

// MARK: - Workloads and operations of several benchmarks

extension Workload {
  /// `BlockOperation`s that are added to a queue one by one. In a chain, each waits for the one before.
  static func stockQueue(_ count: Int, isChain: Bool = false, isSuspended: Bool = false) -> Workload {
    let name = isChain ? "BlockOperation, addDependency, OperationQueue" : "BlockOperation, OperationQueue"
    return Workload(name: name, units: count) {
      Lifetime.run { lifetime in
        let queue = OperationQueue()
        queue.isSuspended = isSuspended
        var last: Operation?
        for index in 0..<count {
          let operation = block(lifetime(index))
          if isChain, let last { operation.addDependency(last) }
          queue.addOperation(operation)
          last = operation
        }
        queue.isSuspended = false
      }
    }
  }

  /// `AsyncBlockOperation`s that are prepared, and added to a queue one by one.
  static func asyncBlocks(
    _ count: Int,
    _ name: String = "AsyncBlockOperation",
    isSuspended: Bool = false,
    width: Int = OperationQueue.defaultMaxConcurrentOperationCount,
    _ prepare: @escaping @Sendable (AsyncOperation, Int) -> AsyncOperation = { operation, _ in operation }
  ) -> Workload {
    Workload(name: "\(name), OperationQueue", units: count) {
      Lifetime.run { lifetime in
        let queue = OperationQueue.limited(to: width)
        queue.isSuspended = isSuspended
        for index in 0..<count { queue.addOperation(prepare(asyncBlock(lifetime(index)), index)) }
        queue.isSuspended = false
      }
    }
  }

  /// `AsyncBlockOperation`s that are prepared, and run as a group.
  static func group(
    _ count: Int,
    _ name: String = "AsyncBlockOperation",
    width: Int = OperationQueue.defaultMaxConcurrentOperationCount,
    _ prepare: @escaping @Sendable (AsyncOperation, Int) -> AsyncOperation = { operation, _ in operation }
  ) -> Workload {
    Workload(name: "\(name), GroupOperation", units: count) {
      Lifetime.run { lifetime in
        let operations = (0..<count).map { prepare(asyncBlock(lifetime($0)), $0) }
        OperationQueue().addOperation(GroupOperation(operations, maxConcurrentOperationCount: width))
      }
    }
  }

  static func chain(_ count: Int, repeated: Int = 1) -> Workload {
    Workload(name: "AsyncBlockOperation ==>, GroupOperation", units: count * repeated) {
      for _ in 0..<repeated {
        Lifetime.run { lifetime in
          let operations = (0..<count).map { asyncBlock(lifetime($0)) }
          for (first, second) in zip(operations, operations.dropFirst()) { first ==> second }
          OperationQueue().addOperation(GroupOperation(operations))
        }
      }
    }
  }

  /// Waits on the calling thread for `body` to return.
  static func awaiting(_ name: String, units: Int, _ body: @escaping @Sendable () async -> Void) -> Workload {
    Workload(name: name, units: units) { startTasks(1) { _ in await body() }.wait() }
  }

  static func tasks(_ count: Int) -> Workload {
    awaiting("Task.value", units: count) { for index in 0..<count { _ = await Task { index }.value } }
  }

  static func block(_ lifetime: Lifetime) -> BlockOperation { BlockOperation { withExtendedLifetime(lifetime) {} } }

  static func asyncBlock(_ lifetime: Lifetime) -> AsyncBlockOperation {
    AsyncBlockOperation { operation in withExtendedLifetime(lifetime) { operation.finish() } }
  }
}

// MARK: - Steps of several benchmarks

extension OperationQueue {
  static func limited(to count: Int) -> OperationQueue {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = count
    return queue
  }
}

/// Runs an operation, and calls `body` when it and some others have begun.
func run(_ operation: AsyncOperation, whenBegun others: [AsyncOperation] = [], _ body: () -> Void = {}) {
  let begun = starts(of: [operation] + others)
  OperationQueue().addOperation(operation)
  begun.wait()
  body()
  operation.waitUntilFinished()
}

/// Returns a group that is empty when all of the operations have begun.
func starts(of operations: [AsyncOperation]) -> DispatchGroup {
  let begun = DispatchGroup()
  for operation in operations {
    begun.enter()
    operation.addObserver(OperationObserver(didStart: { _ in begun.leave() }))
  }
  return begun
}

/// Starts tasks, and returns a group that is empty when all of them have ended.
func startTasks(_ count: Int, _ body: @escaping @Sendable (Int) async throws -> Void) -> DispatchGroup {
  let ended = DispatchGroup()
  for index in 0..<count {
    ended.enter()
    Task {
      try await body(index)
      ended.leave()
    }
  }
  return ended
}
