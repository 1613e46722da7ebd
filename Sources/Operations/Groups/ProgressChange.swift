import Foundation

/// A change to some progresses, to be carried out without the engine's lock held.
struct ProgressChange {
  var total = 0
  var completed = 0
  /// Members that report their own units, and what they count.
  var children: [(operation: AsyncOperation, weight: Int)] = []

  /// Only within ``ProgressLock/exclusively(_:)``.
  func apply(to progresses: [Progress]) {
    for progress in progresses {
      if total != 0 { progress.totalUnitCount += Int64(total) }
      if completed != 0 { progress.completedUnitCount += Int64(completed) }
      for (operation, weight) in children {
        progress.addChild(operation.makeProgressCopy(), withPendingUnitCount: Int64(weight))
      }
    }
  }
}
