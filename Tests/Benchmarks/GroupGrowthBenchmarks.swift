import Foundation
import Operations

/// How the time grows when there is four times as much to do: 4 is linear.
enum GroupGrowthBenchmarks {
  static let all: [Benchmark] = [
    growth("group-new-dependencies", "members of a waiting group that gain a dependency", of: 1000, gainedDependencies),
    growth("group-pairs", "pairs of members that wait for a member group of as many", of: 500, pairs),
    growth("group-nesting", "groups nested from outside in", of: 2000, nesting),
    growth("group-churn", "members that pass through a group in which one stays", of: 20_000, churn),
    growth("group-plain", "plain members, each waiting for the one before", of: 500, plainChain),
  ]

  private static func growth(
    _ name: String,
    _ unit: String,
    of count: Int,
    _ body: @escaping @Sendable (Int) -> Void
  ) -> Benchmark {
    Benchmark(
      name: name,
      unit: "\(4 * count) or \(count) \(unit)",
      numerator: Workload(name: "\(4 * count)", units: 1) { body(4 * count) },
      denominator: Workload(name: "\(count)", units: 1) { body(count) },
      target: .atMost(6)
    )
  }

  /// Runs a group and calls `body` when it has begun.
  private static func run(_ group: GroupOperation, _ body: () -> Void) {
    let (begun, finished) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    group.addObserver(
      OperationObserver(didStart: { _ in begun.signal() }, didFinish: { _ in finished.signal() })
    )
    OperationQueue().addOperation(group)
    begun.wait()
    body()
    finished.wait()
  }

  private static func gainedDependencies(_ count: Int) {
    let outside = AsyncOperation()
    let members = (0..<count).map { _ in AsyncOperation() }
    for member in members { outside ==> member }
    run(GroupOperation(members)) {
      for (first, second) in zip(members, members.dropFirst()) { first ==> second }
      OperationQueue().addOperation(outside)
    }
  }

  private static func pairs(_ count: Int) {
    let outside = AsyncOperation()
    let inside = (0..<count).map { _ in AsyncOperation() }
    for member in inside { outside ==> member }
    let nested = GroupOperation(inside)
    let group = GroupOperation([nested])
    run(group) {
      for _ in 0..<count {
        let (first, second) = (AsyncOperation(), AsyncOperation())
        nested ==> first ==> second
        group.addOperations([first, second])
      }
      OperationQueue().addOperation(outside)
    }
  }

  private static func nesting(_ count: Int) {
    let outermost = GroupOperation()
    var group = outermost
    for _ in 0..<count {
      let inner = GroupOperation()
      group.addOperation(inner)
      group = inner
    }
    withExtendedLifetime(outermost) {}
  }

  private static func churn(_ count: Int) {
    let staying = AsyncBlockOperation { _ in }
    let group = GroupOperation([staying])
    run(group) {
      for index in 0..<count {
        let member = AsyncBlockOperation { $0.finish() }
        group.addOperation(member)
        if index.isMultiple(of: 100) { while group.operations.count > 200 { Thread.sleep(forTimeInterval: 0.0001) } }
      }
      staying.finish()
    }
  }

  private static func plainChain(_ count: Int) {
    let outside = AsyncOperation()
    let members = (0..<count).map { _ in BlockOperation {} }
    outside ==> members[0]
    for (first, second) in zip(members, members.dropFirst()) { first ==> second }
    run(GroupOperation(members)) { OperationQueue().addOperation(outside) }
  }
}
