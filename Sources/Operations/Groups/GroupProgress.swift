import Foundation

/// The state of a group's Foundation `Progress`.
///
/// The engine keeps this value under its lock. The value collects changes, which the engine applies to the `Progress`
/// after releasing the lock.
///
/// The `Progress` is created on request, and kept up to date from then on. A member that reports its own units, such as
/// a nested group, is represented by a child that has no children: see ``OperationProgress``.
struct GroupProgress {
  /// An unfinished member that has a weight or reports its own units.
  struct Part {
    weak var operation: AsyncOperation?
    let weight: Int
    let isReporting: Bool
  }

  private var total = 0
  /// The total that has been applied to the `Progress`.
  private var shownTotal = 0
  private var completed = 0
  private var parts: [ObjectIdentifier: Part] = [:]
  private var isOver = false
  private(set) var shared: OperationProgress?
  /// The change that has not been applied to the `Progress`.
  private var change = ProgressChange()
  private var listeners: [Int: AsyncStream<Double>.Continuation] = [:]
  private var listenersSoFar = 0
  private var hasEndedUpdates = false

  /// Whether the `Progress` has been requested.
  var isFollowed: Bool { shared != nil }

  // MARK: Members

  /// Adds one unit for each of `count` new members. A negative count removes the units of members that were not added.
  mutating func add(_ count: Int) { if !isOver { total += count } }

  /// Records an unfinished member that has a weight or reports its own units.
  mutating func weigh(_ part: MemberPart) {
    let id = ObjectIdentifier(part.operation)
    let before = parts[id] ?? Part(operation: part.operation, weight: 1, isReporting: false)
    // A child keeps the units with which it was added.
    if isOver || before.isReporting || (part.weight == before.weight && !part.isReporting) { return }
    parts[id] = Part(operation: part.operation, weight: part.weight, isReporting: part.isReporting)
    total += part.weight - before.weight
    if part.isReporting, isFollowed { change.children.append((part.operation, part.weight)) }
  }

  mutating func complete(_ operation: Operation) {
    let part = parts.isEmpty ? nil : parts.removeValue(forKey: ObjectIdentifier(operation))
    if isOver { return }
    let weight = part?.weight ?? 1
    completed += weight
    // The units of a reporting member are completed by its child progress.
    if isFollowed, part?.isReporting != true { change.completed += weight }
  }

  /// Completes the progress because the group has finished. The group may have no members, or finish before them.
  ///
  /// - Returns: The reporting members that have not finished.
  mutating func end() -> [AsyncOperation] {
    if isOver { return [] }
    isOver = true
    if total == 0 { total = 1 }
    let unfinished = parts.values.filter(\.isReporting)
    let left = total - completed - unfinished.reduce(0) { $0 + $1.weight }
    completed += left
    if isFollowed { (change.completed, change.isOver) = (change.completed + left, true) }
    return unfinished.compactMap(\.operation)
  }

  // MARK: Progress and listeners

  /// Stores the group's progress, unless there is one. The next change brings the progress up to date.
  ///
  /// - Returns: The group's progress.
  mutating func follow(with new: OperationProgress) -> OperationProgress {
    if let shared { return shared }
    shared = new
    let children = parts.values.filter(\.isReporting).compactMap { part in part.operation.map { ($0, part.weight) } }
    change = ProgressChange(completed: completed, children: children, isOver: isOver)
    return new
  }

  /// Takes the change that has not been applied to the progress.
  mutating func takeChange() -> (progress: OperationProgress, change: ProgressChange)? {
    guard let shared else { return nil }
    let before = shownTotal
    showTotal()
    defer { change = ProgressChange() }
    change.total = shownTotal - before
    return (shared, change)
  }

  /// Updates the shown total, which never returns to zero because Foundation on Linux divides by it.
  private mutating func showTotal() { shownTotal = max(total, min(shownTotal, 1)) }

  /// Adds a listener.
  ///
  /// - Returns: The number that identifies the listener, from 1 up. Nil if there are no more updates.
  mutating func add(_ listener: AsyncStream<Double>.Continuation) -> Int? {
    if hasEndedUpdates { return nil }
    listenersSoFar += 1
    listeners[listenersSoFar] = listener
    return listenersSoFar
  }

  mutating func removeListener(_ number: Int) -> AsyncStream<Double>.Continuation? {
    listeners.removeValue(forKey: number)
  }

  /// Ends the updates, and returns the listeners.
  mutating func endUpdates() -> [AsyncStream<Double>.Continuation] {
    defer { (listeners, hasEndedUpdates) = ([:], true) }
    return Array(listeners.values)
  }

  /// The listeners that receive the group's progress.
  var audience: [AsyncStream<Double>.Continuation] { Array(listeners.values) }
}

/// The share of a member in the progress of its group.
struct MemberPart {
  let operation: AsyncOperation
  let index: Int
  let weight: Int
  let isReporting: Bool

  init(_ operation: AsyncOperation, index: Int) {
    let (weight, reports) = operation.core.withLock { ($0.extras?.progressWeight ?? 1, $0.extras?.progress != nil) }
    self.operation = operation
    self.index = index
    self.weight = weight
    isReporting = reports || operation is GroupOperation
  }
}
