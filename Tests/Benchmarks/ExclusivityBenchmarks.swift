import Foundation
import Operations

/// Operations that exclude each other, against what one would write without the package, and against no exclusion at
/// all.
enum ExclusivityBenchmarks {
  private static let count = 10_000

  static let all: [Benchmark] = [
    Benchmark(
      name: "exclusive",
      unit: "operation, \(count) under one key",
      numerator: stockChain(count),
      denominator: oneKey(count),
      target: .atLeast(0.7, aim: 1)
    ),
    Benchmark(
      name: "exclusive-group",
      unit: "operation, \(count) under one key",
      numerator: oneKeyInGroup(count),
      denominator: .chain(count),
      target: .none
    ),
    Benchmark(
      name: "exclusive-keys",
      unit: "operation, \(count) under a key each",
      numerator: ownKeys(count),
      denominator: .asyncBlocks(count),
      target: .none
    ),
  ]

  /// What one writes without the package: each waits for the one that was added before.
  private static func stockChain(_ count: Int) -> Workload {
    Workload(name: "BlockOperation, addDependency, OperationQueue", units: count) {
      Lifetime.run { lifetime in
        let queue = OperationQueue()
        queue.isSuspended = true
        var last: Operation?
        for index in 0..<count {
          let operation = Workload.block(lifetime(index))
          if let last { operation.addDependency(last) }
          queue.addOperation(operation)
          last = operation
        }
        queue.isSuspended = false
      }
    }
  }

  private static func oneKey(_ count: Int) -> Workload {
    Workload(name: "exclusive, OperationQueue", units: count) {
      Lifetime.run { lifetime in
        let queue = OperationQueue()
        queue.isSuspended = true
        for index in 0..<count { queue.addOperation(Workload.asyncBlock(lifetime(index)), exclusive: "key") }
        queue.isSuspended = false
      }
    }
  }

  private static func oneKeyInGroup(_ count: Int) -> Workload {
    Workload(name: "exclusive, GroupOperation", units: count) {
      Lifetime.run { lifetime in
        let group = GroupOperation()
        for index in 0..<count { group.addOperation(Workload.asyncBlock(lifetime(index)), exclusive: "key") }
        OperationQueue().addOperation(group)
      }
    }
  }

  private static func ownKeys(_ count: Int) -> Workload {
    let keys = (0..<count).map { ExclusivityKey("key \($0)") }
    return Workload(name: "exclusive, OperationQueue", units: count) {
      Lifetime.run { lifetime in
        let queue = OperationQueue()
        for index in 0..<count { queue.addOperation(Workload.asyncBlock(lifetime(index)), exclusive: keys[index]) }
      }
    }
  }
}
