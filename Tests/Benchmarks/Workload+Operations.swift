import Foundation
import Operations

/// What several benchmarks measure, or measure with.
extension Workload {
  static func asyncBlocks(_ count: Int) -> Workload {
    Workload(name: "AsyncBlockOperation, OperationQueue", units: count) {
      Lifetime.run { lifetime in
        let queue = OperationQueue()
        for index in 0..<count { queue.addOperation(asyncBlock(lifetime(index))) }
      }
    }
  }

  static func stockChain(_ count: Int) -> Workload {
    Workload(name: "BlockOperation, addDependency, OperationQueue", units: count) {
      Lifetime.run { lifetime in
        let operations = (0..<count).map { block(lifetime($0)) }
        for (first, second) in zip(operations, operations.dropFirst()) { second.addDependency(first) }
        OperationQueue().addOperations(operations, waitUntilFinished: false)
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

  static func block(_ lifetime: Lifetime) -> BlockOperation {
    BlockOperation { withExtendedLifetime(lifetime) {} }
  }

  static func asyncBlock(_ lifetime: Lifetime) -> AsyncBlockOperation {
    AsyncBlockOperation { operation in withExtendedLifetime(lifetime) { operation.finish() } }
  }
}
