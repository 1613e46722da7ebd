import Foundation

/// The Progress of a group, made when it is asked for, and kept up to date from then on.
///
/// A nested group's progress becomes the child of its outer group's, as one made for it: the one that ``shared(onCancel:)``
/// returns stays free to be anybody's child, which it can be only once.
///
/// Foundation's Progress has no lock on Linux, and a child changes its parent. So all the changes that groups make happen
/// under one lock, a recursive one because elsewhere observers are called inside. It costs nothing until a progress is
/// asked for.
final class GroupProgress: Sendable {
  private static let lock = NSRecursiveLock()

  private struct State {
    var total = 0
    var completed = 0
    /// The groups among the members whose unit is not completed.
    var groups: [ObjectIdentifier: WeakGroup] = [:]
    var shared: Progress?
    var progresses: [Progress] = []
  }

  private struct WeakGroup {
    weak var group: GroupOperation?
  }

  private let state = Locked(State())

  func shared(onCancel: @escaping @Sendable () -> Void) -> Progress {
    GroupProgress.lock.withLock {
      if let shared = state.withLock({ $0.shared }) { return shared }
      let progress = makeProgress()
      progress.isCancellable = true
      progress.cancellationHandler = onCancel
      state.withLock { $0.shared = progress }
      return progress
    }
  }

  func makeProgress() -> Progress {
    GroupProgress.lock.withLock {
      let progress = Progress.discreteProgress(totalUnitCount: 0)
      let (total, completed, groups) = state.withLock { state in
        state.progresses.append(progress)
        return (state.total, state.completed, state.groups.values.compactMap(\.group))
      }
      progress.totalUnitCount = Int64(total)
      progress.completedUnitCount = Int64(completed)
      for group in groups { progress.addChild(group.makeProgress(), withPendingUnitCount: 1) }
      return progress
    }
  }

  func add(_ operations: [Operation]) {
    let groups = operations.compactMap { $0 as? GroupOperation }
    let progresses = state.withLock { state in
      state.total += operations.count
      for group in groups { state.groups[ObjectIdentifier(group)] = WeakGroup(group: group) }
      return state.progresses
    }
    change(progresses) { progress in
      progress.totalUnitCount += Int64(operations.count)
      for group in groups { progress.addChild(group.makeProgress(), withPendingUnitCount: 1) }
    }
  }

  func complete(_ operation: Operation) {
    let (progresses, isGroup) = state.withLock { state in
      state.completed += 1
      let isGroup = !state.groups.isEmpty && state.groups.removeValue(forKey: ObjectIdentifier(operation)) != nil
      return (state.progresses, isGroup)
    }
    // The unit of a group is completed by its child progress.
    if !isGroup { change(progresses) { $0.completedUnitCount += 1 } }
  }

  /// The group has ended. One without members, too, has done all it had to do.
  func close() {
    let progresses = state.withLock { state in
      guard state.total == 0 else { return [] as [Progress] }
      state.total = 1
      state.completed = 1
      return state.progresses
    }
    change(progresses) { progress in
      progress.totalUnitCount = 1
      progress.completedUnitCount = 1
    }
  }

  private func change(_ progresses: [Progress], _ change: (Progress) -> Void) {
    if progresses.isEmpty { return }
    GroupProgress.lock.withLock { for progress in progresses { change(progress) } }
  }
}
