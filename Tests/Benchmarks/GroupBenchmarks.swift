import Foundation
import Operations

/// Groups and operations against stock Foundation.
enum GroupBenchmarks {
  private static let independent = 100_000
  private static let fed = 10_000

  static let all: [Benchmark] = [
    Benchmark(
      name: "group",
      unit: "operation, \(independent) independent",
      numerator: stockQueue(independent),
      denominator: group(independent),
      target: .atLeast(2, aim: 2.5)
    ),
    Benchmark(
      name: "group-by-hand",
      unit: "operation, \(independent) independent",
      numerator: group(independent),
      denominator: byHand(independent),
      target: .atMost(1.5)
    ),
    Benchmark(
      name: "chain",
      unit: "operation of a chain of 4000",
      numerator: .stockChain(4000),
      denominator: .chain(4000),
      target: .atLeast(100, aim: 100)
    ),
    Benchmark(
      name: "chain-growth",
      unit: "operation of a chain of 64000 or 4000",
      numerator: .chain(64_000),
      denominator: .chain(4000, repeated: 16),
      target: .atMost(1.5)
    ),
    Benchmark(
      name: "open-group-chain",
      unit: "member of \(fed) that are added one by one, each waiting for the one before",
      numerator: fedQueue(fed),
      denominator: fedGroup(fed),
      target: .atLeast(2, aim: 5)
    ),
    Benchmark(
      name: "async-block",
      unit: "operation in a stock queue",
      numerator: stockQueue(50_000),
      denominator: .asyncBlocks(50_000),
      target: .atLeast(0.8, aim: 0.95)
    ),
  ]

  private static func stockQueue(_ count: Int) -> Workload {
    Workload(name: "BlockOperation, OperationQueue", units: count) {
      Lifetime.run { lifetime in
        let queue = OperationQueue()
        for index in 0..<count { queue.addOperation(Workload.block(lifetime(index))) }
      }
    }
  }

  private static func fedQueue(_ count: Int) -> Workload {
    Workload(name: "BlockOperation, OperationQueue", units: count) {
      Lifetime.run { lifetime in
        let queue = OperationQueue()
        var last: Operation?
        for index in 0..<count {
          let next = Workload.block(lifetime(index))
          if let last { next.addDependency(last) }
          queue.addOperation(next)
          last = next
        }
      }
    }
  }

  private static func fedGroup(_ count: Int) -> Workload {
    Workload(name: "AsyncBlockOperation ==>, open GroupOperation", units: count) {
      Lifetime.run { lifetime in
        let group = GroupOperation()
        group.staysOpen = true
        OperationQueue().addOperation(group)
        var last: AsyncOperation?
        for index in 0..<count {
          let next = Workload.asyncBlock(lifetime(index))
          if let last { last ==> next }
          group.addOperation(next)
          last = next
        }
        group.staysOpen = false
      }
    }
  }

  private static func byHand(_ count: Int) -> Workload {
    Workload(name: "BlockOperation, start()", units: count) {
      Lifetime.run { lifetime in
        for index in 0..<count { Workload.block(lifetime(index)).start() }
      }
    }
  }

  private static func group(_ count: Int) -> Workload {
    Workload(name: "AsyncBlockOperation, GroupOperation", units: count) {
      Lifetime.run { lifetime in
        OperationQueue().addOperation(GroupOperation((0..<count).map { Workload.asyncBlock(lifetime($0)) }))
      }
    }
  }
}
