import Foundation

/// A change to some progresses, to be carried out without a lock of the package's own held.
///
/// Foundation's Progress has no lock on Linux, and a child changes its parent. So all the changes that operations make
/// happen under one lock; a recursive one, because on Apple's platforms observers are called inside.
struct ProgressChange {
  private static let lock = NSRecursiveLock()

  var total = 0
  var completed = 0
  /// Members that report their own units, and what they count.
  var children: [(operation: AsyncOperation, weight: Int)] = []

  static func exclusively<Result>(_ body: () -> Result) -> Result { lock.withLock(body) }

  /// Only within ``exclusively(_:)``.
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
