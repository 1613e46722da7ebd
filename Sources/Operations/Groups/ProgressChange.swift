import Foundation

/// A change to some progresses, to be carried out without a lock of the package's own held.
///
/// Foundation's Progress has no lock on Linux, and a child changes its parent. So all the changes that groups make happen
/// under one lock; a recursive one, because on Apple's platforms observers are called inside.
struct ProgressChange {
  private static let lock = NSRecursiveLock()

  private let progresses: [Progress]
  private let addedToTotal: Int
  private let completed: Int
  private let groups: [GroupOperation]

  init(_ progresses: [Progress], addingToTotal total: Int, completed: Int, groups: [GroupOperation]) {
    self.progresses = progresses
    self.addedToTotal = total
    self.completed = completed
    self.groups = groups
  }

  static func exclusively<Result>(_ body: () -> Result) -> Result { lock.withLock(body) }

  func apply() {
    if progresses.isEmpty { return }
    ProgressChange.exclusively {
      for progress in progresses {
        if addedToTotal != 0 { progress.totalUnitCount += Int64(addedToTotal) }
        if completed != 0 { progress.completedUnitCount += Int64(completed) }
        for group in groups { progress.addChild(group.makeProgress(), withPendingUnitCount: 1) }
      }
    }
  }
}
