import Foundation

/// What a group has to say through Foundation's Progress: a value that is kept under the engine's lock, and returns the
/// changes to be made when that is released.
///
/// A Progress is made when it is asked for, and kept up to date from then on. A nested group's becomes the child of its
/// outer group's, as one made for it: the shared one stays free to be anybody's child, which it can be only once.
struct GroupProgress {
  struct WeakGroup {
    weak var group: GroupOperation?
  }

  private var total = 0
  private var completed = 0
  /// The groups among the unfinished members.
  private var groups: [ObjectIdentifier: WeakGroup] = [:]
  private var progresses: [Progress] = []
  private(set) var shared: Progress?

  mutating func add(_ count: Int, groups newGroups: [GroupOperation]) -> ProgressChange {
    total += count
    for group in newGroups { groups[ObjectIdentifier(group)] = WeakGroup(group: group) }
    return ProgressChange(progresses, addingToTotal: count, completed: 0, groups: newGroups)
  }

  mutating func complete(_ operation: Operation) -> ProgressChange {
    completed += 1
    // The unit of a group is completed by its child progress.
    let isGroup = !groups.isEmpty && groups.removeValue(forKey: ObjectIdentifier(operation)) != nil
    return ProgressChange(progresses, addingToTotal: 0, completed: isGroup ? 0 : 1, groups: [])
  }

  /// The group has ended. One without members, too, has done all it had to do.
  mutating func end() -> ProgressChange {
    guard total == 0 else { return ProgressChange([], addingToTotal: 0, completed: 0, groups: []) }
    total = 1
    completed = 1
    return ProgressChange(progresses, addingToTotal: 1, completed: 1, groups: [])
  }

  /// Takes up a new progress, and says what is to be told it of the past.
  mutating func follow(_ progress: Progress, isShared: Bool) -> ProgressChange {
    progresses.append(progress)
    if isShared { shared = progress }
    let groups = groups.values.compactMap(\.group)
    return ProgressChange([progress], addingToTotal: total, completed: completed, groups: groups)
  }
}
