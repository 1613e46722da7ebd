import Foundation
import Operations

/// Groups and operations compared with stock Foundation, and the cost of a tracer.
enum GroupBenchmarks {
  private static let independent = 100_000
  private static let fed = 10_000
  private static let unit = "operation, \(independent) independent"
  private static let chained = "operation of a chain of 4000"
  private static let longer = "\(chained) or 64000"
  private static let queued = "operation in a stock queue"
  private static let added = "member of \(fed) that are added one by one, each waiting for the one before"
  private static let member = "operation of a group, \(independent) independent"

  static let all: [Benchmark] = [
    Benchmark("group", of: unit, .stockQueue(independent), over: group, .atLeast(2, aim: 2.5)),
    Benchmark("chain", of: chained, stockChain(4000), over: .chain(4000), .atLeast(100, aim: 100)),
    Benchmark("chain-growth", of: longer, .chain(64_000), over: .chain(4000, repeated: 16), .atMost(1.5)),
    Benchmark("open-group-chain", of: added, .stockQueue(fed, isChain: true), over: fedGroup, .atLeast(2, aim: 5)),
    Benchmark("async-block", of: queued, .stockQueue(50_000), over: .asyncBlocks(50_000), .atLeast(0.8, aim: 0.95)),
    Benchmark("untraced", of: "\(member), while a tracer follows another", besideTracer, over: group, .atMost(1.1)),
    Benchmark("traced", of: member, tracedGroup, over: group),
  ]

  private static let group = Workload.group(independent)

  static func stockChain(_ count: Int) -> Workload {
    Workload(name: "BlockOperation, addDependency, OperationQueue", units: count) {
      Lifetime.run { lifetime in
        let operations = (0..<count).map { Workload.block(lifetime($0)) }
        for (first, second) in zip(operations, operations.dropFirst()) { second.addDependency(first) }
        OperationQueue().addOperations(operations, waitUntilFinished: false)
      }
    }
  }

  private static let fedGroup = Workload(name: "AsyncBlockOperation ==>, open GroupOperation", units: fed) {
    Lifetime.run { lifetime in
      let group = GroupOperation()
      group.staysOpen = true
      OperationQueue().addOperation(group)
      var last: AsyncOperation?
      for index in 0..<fed {
        let next = Workload.asyncBlock(lifetime(index))
        if let last { last ==> next }
        group.addOperation(next)
        last = next
      }
      group.staysOpen = false
    }
  }

  // MARK: Diagnostics

  private static let besideTracer = Workload(name: "not followed", units: independent) {
    let tracer = OperationTracer()
    tracer.trace(AsyncBlockOperation { $0.finish() })
    _ = group.measure(0)
    withExtendedLifetime(tracer) {}
  }

  private static let tracedGroup = Workload(name: "followed", units: independent) {
    let tracer = OperationTracer()
    Lifetime.run { lifetime in
      let group = GroupOperation((0..<independent).map { Workload.asyncBlock(lifetime($0)) })
      tracer.trace(group)
      OperationQueue().addOperation(group)
    }
    withExtendedLifetime(tracer) {}
  }
}
