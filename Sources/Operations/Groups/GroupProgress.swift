import Foundation

/// The state of a group's Foundation `Progress`, which is created on request. The engine applies changes to it after
/// releasing its lock. A member that reports its own units, such as a group, is a child: see ``OperationProgress``.
struct GroupProgress {
  typealias Child = (operation: AsyncOperation, weight: Int)

  /// What the `Progress` did not show before, and the caller adds to it.
  typealias Change = (progress: OperationProgress, completed: Int, total: Int, children: [Child])

  private var total = 0
  private var shownTotal = 0
  private var completed = 0
  private var newlyCompleted = 0
  private var newChildren: [Child] = []
  /// Nil when the group has finished.
  private var parts: [ObjectIdentifier: MemberPart]? = [:]
  private(set) var shared: OperationProgress?
  var listeners = NumberedList<AsyncStream<Double>.Continuation>()

  var isFollowed: Bool { shared != nil }

  var hasChildren: Bool { parts?.values.contains { $0.child != nil } ?? false }

  var isOver: Bool { parts == nil }

  var children: [Child] { parts?.values.compactMap { part in part.child.map { ($0, part.weight) } } ?? [] }

  // MARK: Members

  /// A negative count removes the units of members that were not added.
  mutating func add(_ count: Int) { if !isOver { total += count } }

  /// Removes a member that has not finished.
  mutating func remove(_ operation: Operation) {
    total -= parts?.removeValue(forKey: ObjectIdentifier(operation))?.weight ?? 1
    newChildren.removeAll { $0.operation === operation }
  }

  mutating func weigh(_ part: MemberPart) {
    if isOver { return }
    let before = parts?[part.member]
    // A child keeps the units with which it was added.
    if before?.child != nil { return }
    parts?[part.member] = part
    total += part.weight - (before?.weight ?? 1)
    if let child = part.child, isFollowed { newChildren.append((child, part.weight)) }
  }

  mutating func complete(_ member: ObjectIdentifier) {
    guard let hasNone = parts?.isEmpty else { return }
    let part = hasNone ? nil : parts?.removeValue(forKey: member)
    let weight = part?.weight ?? 1
    completed += weight
    // The units of a child are completed by its own progress.
    if part?.child == nil { newlyCompleted += weight }
  }

  /// Completes the progress because the group has finished, and returns the children that have not.
  mutating func end() -> [AsyncOperation] {
    if isOver { return [] }
    if total == 0 { total = 1 }
    let unfinished = children
    newlyCompleted += total - completed - unfinished.reduce(0) { $0 + $1.weight }
    completed = total
    parts = nil
    return unfinished.map(\.operation)
  }

  // MARK: Progress

  /// Stores the group's progress, unless there is one. The next change brings it up to date.
  mutating func follow(with new: OperationProgress) -> OperationProgress {
    if let shared { return shared }
    shared = new
    newChildren = children
    newlyCompleted = completed
    return new
  }

  mutating func takeChange() -> Change? {
    guard let shared else { return nil }
    let before = shownTotal
    // Never returns to zero, because Foundation on Linux divides by it.
    shownTotal = max(total, min(shownTotal, 1))
    let completed = exchange(&newlyCompleted, with: 0)
    let children = exchange(&newChildren, with: [])
    return (shared, completed, shownTotal - before, children)
  }
}

struct MemberPart {
  let member: ObjectIdentifier
  let index: Int
  let weight: Int
  /// The member, if it reports its own units. Its progress is then a child of that of the group.
  let child: AsyncOperation?

  /// Nil for a member of one unit.
  init?(_ operation: AsyncOperation, index: Int) {
    let (weight, reports) = operation.core.withLock { ($0.extras?.progressWeight ?? 1, $0.extras?.progress != nil) }
    child = reports || operation is GroupOperation ? operation : nil
    if weight == 1, child == nil { return nil }
    member = ObjectIdentifier(operation)
    self.index = index
    self.weight = weight
  }
}

extension GroupEngine {
  func sharedProgress(of group: GroupOperation) -> OperationProgress {
    OperationProgress.exclusively {
      if let progress = state.withLock({ $0.progress.shared }) { return progress }
      let progress = follow(group)
      applyProgressChanges()
      return progress
    }
  }

  private func follow(_ group: GroupOperation) -> OperationProgress {
    let new = OperationProgress(of: group)
    return state.withLock { $0.progress.follow(with: new) }
  }

  /// Applies all changes, within ``OperationProgress/exclusively(_:)``. They include those that another thread is about
  /// to apply, so the progress is complete when the thread that ends the group has called this method.
  private func applyProgressChanges() {
    // A loop, because recursion would limit the depth of nested groups.
    var pending = [self]
    var inside: [OperationProgress] = []
    while let engine = pending.popLast() {
      let (change, isOver) = engine.state.withLock { ($0.progress.takeChange(), $0.progress.isOver) }
      guard let change else { continue }
      change.progress.advance(completed: change.completed, total: change.total, isOver: isOver)
      if engine !== self { inside.append(change.progress) }
      for (operation, weight) in change.children {
        let child: OperationProgress
        if let group = operation as? GroupOperation {
          child = group.engine.follow(group)
          pending.append(group.engine)
        } else {
          child = operation.ownProgress
        }
        change.progress.addChild(child.makeCopy(), withPendingUnitCount: Int64(weight))
      }
    }
    // Inner groups come first, because each of them changes its enclosing group.
    for progress in inside.reversed() { progress.updateCopies() }
  }

  func updateProgress() {
    guard state.withLock({ $0.progress.isFollowed }) else { return }
    OperationProgress.exclusively { applyProgressChanges() }
    if publishProgress() { owner?.progressDidChange() }
  }

  // MARK: Streams

  func updates(for group: GroupOperation) -> AsyncStream<Double> {
    let progress = sharedProgress(of: group)
    let (stream, listener) = AsyncStream.makeStream(of: Double.self, bufferingPolicy: .bufferingNewest(1))
    let number = OperationProgress.exclusively {
      listener.yield(progress.fractionCompleted)
      return state.withLock { $0.progress.listeners.append(listener) }
    }
    listener.onTermination = { [weak self] _ in _ = self?.state.withLock { $0.progress.listeners.remove(number) } }
    // Registers once, for all listeners, because a long-running group may have had many.
    if number == 0 { group.whenFinished { [weak self] in self?.endUpdates() } }
    if group.isFinished { endUpdates() }
    return stream
  }

  private func endUpdates() {
    for listener in state.withLock({ $0.progress.listeners.removeAll() }) {
      listener.yield(1)
      listener.finish()
    }
  }

  // MARK: Ending

  /// Ends the progress of the group and of its members, which may finish after the group.
  func endProgress() {
    var engines = [self]
    var next = 0
    while next < engines.count {
      for operation in engines[next].state.withLock({ $0.progress.end() }) {
        if let group = operation as? GroupOperation {
          engines.append(group.engine)
        } else {
          operation.core.withLock { $0.extras?.progress }?.end()
        }
      }
      next += 1
    }
    // Inner groups come first, because a progress that has ended no longer changes.
    for engine in engines.reversed() { engine.updateProgress() }
  }
}
