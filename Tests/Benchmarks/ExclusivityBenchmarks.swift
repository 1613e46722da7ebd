import Foundation
import Operations

/// Operations that exclude each other, against what one would write without the package, and against no exclusion at
/// all; and what four times as many of them cost.
enum ExclusivityBenchmarks {
  private static let count = 10_000
  private static let few = 2_000

  static let all: [Benchmark] = [
    Benchmark(
      name: "exclusive",
      unit: "operation, \(few) under one key",
      numerator: stockChain(few),
      denominator: oneKey(few),
      target: .atLeast(0.7, aim: 1)
    ),
    Benchmark(
      name: "exclusive-group",
      unit: "operation, \(count) under one key",
      numerator: inGroup("exclusive", count) { operation, _ in operation.exclusive("key") },
      denominator: .chain(count),
      target: .atMost(2.5)
    ),
    Benchmark(
      name: "exclusive-keys",
      unit: "operation, \(count) under a key each",
      numerator: ownKeys(count),
      denominator: .asyncBlocks(count),
      target: .atMost(1.3)
    ),
    growth("one-key") { few in inGroup("one key", few) { operation, _ in operation.exclusive("key") } },
    growth("own-keys") { few in inGroup("own keys", few) { $0.exclusive(ExclusivityKey("\($1)")) } },
    growth("limited") { few in inGroup("limited", few) { operation, _ in operation.limited("key", to: 4) } },
    growth("holder", insideHolder),
    growth("slots", beforeThoseThatWaitForSlots),
  ]

  /// By how much the cost of an operation grows if there are four times as many: 1 is linear, and 1.5 stands for 6
  /// times the time.
  private static func growth(_ name: String, _ workload: (Int) -> Workload) -> Benchmark {
    Benchmark(
      name: "exclusive-growth-\(name)",
      unit: "operation, \(few * 4) over \(few)",
      numerator: workload(few * 4),
      denominator: workload(few),
      target: .atMost(1.5)
    )
  }

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
        for index in 0..<count { queue.addOperation(Workload.asyncBlock(lifetime(index)).exclusive("key")) }
        queue.isSuspended = false
      }
    }
  }

  private static func inGroup(
    _ name: String,
    _ count: Int,
    _ give: @escaping @Sendable (AsyncOperation, Int) -> Void
  ) -> Workload {
    Workload(name: "\(name), GroupOperation", units: count) {
      Lifetime.run { lifetime in
        let operations = (0..<count).map { index in
          let operation = Workload.asyncBlock(lifetime(index))
          give(operation, index)
          return operation
        }
        OperationQueue().addOperation(GroupOperation(operations))
      }
    }
  }

  private static func ownKeys(_ count: Int) -> Workload {
    let keys = (0..<count).map { ExclusivityKey("key \($0)") }
    return Workload(name: "exclusive, OperationQueue", units: count) {
      Lifetime.run { lifetime in
        let queue = OperationQueue()
        for index in 0..<count { queue.addOperation(Workload.asyncBlock(lifetime(index)).exclusive(keys[index])) }
      }
    }
  }

  /// A group holds a key that n operations wait for, and adds n members with keys of their own. The waiters are members
  /// of another group: a queue would walk all of them at every finish.
  private static func insideHolder(_ count: Int) -> Workload {
    let domain = ExclusivityDomain()
    return Workload(name: "members of a holder", units: count) {
      Lifetime.run { lifetime in
        let queue = OperationQueue()
        let holder = GroupOperation().exclusive("held", in: domain)
        let waiters = (0..<count).map { Workload.asyncBlock(lifetime($0)).exclusive("held", in: domain) }
        let members = (0..<count).map {
          Workload.asyncBlock(lifetime($0)).exclusive(ExclusivityKey("\($0)"), in: domain)
        }
        let first = AsyncBlockOperation { operation in
          queue.addOperation(GroupOperation(waiters))
          while domain.waiting(for: "held").count < 2 { Thread.sleep(forTimeInterval: 0.0001) }
          for member in members { holder.addOperation(member) }
          operation.finish()
        }
        holder.addOperation(first)
        queue.addOperation(holder)
      }
    }
  }

  /// Members of a group in a serial queue want the keys that n operations behind the group are next for, which are
  /// cancelled in the end: a queue would walk all of them at every finish.
  private static func beforeThoseThatWaitForSlots(_ count: Int) -> Workload {
    let domain = ExclusivityDomain()
    return Workload(name: "members before a serial queue", units: count) {
      Lifetime.run { lifetime in
        let outer = GroupOperation()
        outer.maxConcurrentOperationCount = 1
        let members = (0..<count).map { Workload.asyncBlock(lifetime($0)).exclusive("key", in: domain) }
        let first = GroupOperation(members)
        let behind = (0..<count).map { Workload.asyncBlock(lifetime($0)).exclusive("key", in: domain) }
        outer.addOperations([first] + behind)
        OperationQueue().addOperation(outer)
      }
    }
  }
}
