import Foundation

/// A change to some progresses, to be carried out without a lock of the package's own held.
///
/// Foundation's Progress has no lock on Linux, and a child changes its parent. So all the changes that operations make
/// happen under one lock; a recursive one, because on Apple's platforms observers are called inside.
struct ProgressChange {
  private static let lock = NSRecursiveLock()

  private let progresses: [Progress]
  private let addedToTotal: Int
  private let completed: Int
  /// Members that report their own units, and what they count.
  private let children: [(operation: AsyncOperation, weight: Int)]

  init(
    _ progresses: [Progress],
    addingToTotal total: Int = 0,
    completing completed: Int = 0,
    children: [(operation: AsyncOperation, weight: Int)] = []
  ) {
    self.progresses = progresses
    self.addedToTotal = total
    self.completed = completed
    self.children = children
  }

  /// Nobody has asked for a progress.
  var isEmpty: Bool { progresses.isEmpty }

  static func exclusively<Result>(_ body: () -> Result) -> Result { lock.withLock(body) }

  func apply() {
    if progresses.isEmpty { return }
    ProgressChange.exclusively {
      for progress in progresses {
        if addedToTotal != 0 { progress.totalUnitCount += Int64(addedToTotal) }
        if completed != 0 { progress.completedUnitCount += Int64(completed) }
        for (operation, weight) in children {
          progress.addChild(operation.makeProgressCopy(), withPendingUnitCount: Int64(weight))
        }
      }
    }
  }
}
