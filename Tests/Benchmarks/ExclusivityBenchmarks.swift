import Foundation
import Operations

/// Operations that exclude each other, compared with code without the package and with no exclusion, and the growth of
/// their cost.
enum ExclusivityBenchmarks {
  private static let count = 10_000
  private static let few = 2_000

  static let all: [Benchmark] = [
    Benchmark(
      "exclusive",
      of: "operation, \(few) under one key",
      .stockQueue(few, isChain: true, isSuspended: true),
      over: .asyncBlocks(few, "exclusive", isSuspended: true) { operation, _ in operation.exclusive("key") },
      .atLeast(0.7, aim: 1)
    ),
    Benchmark(
      "exclusive-group",
      of: "operation, \(count) under one key",
      .group(count, "exclusive") { operation, _ in operation.exclusive("key") },
      over: .chain(count),
      .atMost(1.7)
    ),
    Benchmark(
      "exclusive-keys",
      of: "operation, \(count) under a key each",
      .asyncBlocks(count, "exclusive") { [keys = (0..<count).map { ExclusivityKey("key \($0)") }] operation, index in
        operation.exclusive(keys[index])
      },
      over: .asyncBlocks(count),
      .atMost(2)
    ),
    growth("one-key") { .group($0, "one key") { operation, _ in operation.exclusive("key") } },
    growth("shared") { .group($0, "shared", width: 1) { operation, _ in operation.shared("key") } },
    growth("own-keys") { .group($0, "own keys") { $0.exclusive(ExclusivityKey("\($1)")) } },
    growth("limited") { .group($0, "limited") { operation, _ in operation.limited("key", to: 4) } },
    growth("holder") { count in
      // A group holds a key that n operations wait for, and adds n members with keys of their own. The waiters are
      // members of another group: a queue would walk all of them at every finish.
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
    },
    growth("slots") { count in
      // Members of a group want the key for which n operations wait behind the group, whose slot is the only one. The
      // slot is that of another group: a queue would walk all of them at every finish.
      let domain = ExclusivityDomain()
      return Workload(name: "members before a serial queue", units: count) {
        Lifetime.run { lifetime in
          let members = (0..<count).map { Workload.asyncBlock(lifetime($0)).exclusive("key", in: domain) }
          let first = GroupOperation(members)
          let behind = (0..<count).map { Workload.asyncBlock(lifetime($0)).exclusive("key", in: domain) }
          OperationQueue().addOperation(GroupOperation([first] + behind, maxConcurrentOperationCount: 1))
        }
      }
    },
  ]

  /// By how much the cost of an operation grows if there are four times as many: 1 is linear, and 1.5 stands for 6
  /// times the time.
  private static func growth(_ name: String, _ workload: (Int) -> Workload) -> Benchmark {
    let unit = "operation, \(few * 4) over \(few)"
    return Benchmark("exclusive-growth-\(name)", of: unit, workload(few * 4), over: workload(few), .atMost(1.5))
  }
}
