import Foundation
import Operations

/// How the time of a whole workload grows when there is four times as much of it: 4 is linear, 16 quadratic.
enum DependencyGrowthBenchmarks {
  static let all: [Benchmark] = [
    growth("dependents-leave", of: "dependents that stop waiting for one operation", from: 10_000, leave),
    growth("dependencies-leave", of: "dependencies that one operation stops waiting for", from: 10_000, removeAll),
    growth("nested-progress", of: "nested groups whose progress is followed", from: 2_000, nest),
  ]

  private static func growth(
    _ name: String,
    of what: String,
    from count: Int,
    _ run: @escaping @Sendable (Int) -> Void
  ) -> Benchmark {
    func workload(_ count: Int) -> Workload { Workload(name: "\(count)", units: 1) { run(count) } }
    return Benchmark(
      name: name,
      unit: "round of \(what)",
      numerator: workload(4 * count),
      denominator: workload(count),
      target: .atMost(6)
    )
  }

  /// The last one first, as it is the last to be found.
  private static func leave(_ count: Int) {
    let dependency = AsyncOperation()
    let dependents = (0..<count).map { _ in AsyncOperation() }
    dependency ==> dependents
    for dependent in dependents.reversed() { dependent.removeDependency(dependency) }
  }

  private static func removeAll(_ count: Int) {
    let dependencies = (0..<count).map { _ in AsyncOperation() }
    let dependent = AsyncOperation()
    dependencies ==> dependent
    for dependency in dependencies { dependent.removeDependency(dependency) }
  }

  private static func nest(_ count: Int) {
    Lifetime.run { lifetime in
      var group = GroupOperation([Workload.asyncBlock(lifetime(0))])
      for _ in 0..<count { group = GroupOperation([group]) }
      let progress = group.progress
      let end = DispatchSemaphore(value: 0)
      group.addObserver(OperationObserver(didFinish: { _ in end.signal() }))
      OperationQueue().addOperation(group)
      end.wait()
      if progress.fractionCompleted != 1 { fatalError("The progress is incomplete.") }
    }
  }
}
