import Foundation

/// What a group has to say through Foundation's Progress: a value that is kept under the engine's lock, and collects
/// the changes to be made when that is released.
///
/// A Progress is made when it is asked for, and kept up to date from then on. A member that reports its own units, as a
/// nested group does, becomes a child of it, by a copy without children: see ``OperationProgress``.
struct GroupProgress {
  /// An unfinished member that is not just one unit that is done or is not.
  struct Part {
    weak var operation: AsyncOperation?
    let weight: Int
    let isReporting: Bool
  }

  private var total = 0
  /// The total that the progress has been told.
  private var shownTotal = 0
  private var completed = 0
  private var parts: [ObjectIdentifier: Part] = [:]
  private var isOver = false
  private(set) var shared: OperationProgress?
  /// What the progress has not been told yet.
  private var change = ProgressChange()
  private var listeners: [Int: AsyncStream<Double>.Continuation] = [:]
  private var listenersSoFar = 0
  private var hasEndedUpdates = false

  /// The progress has been asked for.
  var isFollowed: Bool { shared != nil }

  // MARK: Members

  /// Members come, a unit each; or, if `count` is negative, do not come after all.
  mutating func add(_ count: Int) { if !isOver { total += count } }

  /// An unfinished member is not a simple unit.
  mutating func weigh(_ part: MemberPart) {
    let id = ObjectIdentifier(part.operation)
    let before = parts[id] ?? Part(operation: part.operation, weight: 1, isReporting: false)
    // A child keeps the portion it came with.
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
    // The units of one that reports are completed by its child progress.
    if isFollowed, part?.isReporting != true { change.completed += weight }
  }

  /// The group has ended. One without members, too, has done all it had to do, and so has one that did not wait for
  /// them.
  ///
  /// - Returns: The members that report and whose parts are still open.
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

  // MARK: Those who follow

  /// Takes up the progress, which is brought up to date by the next change, unless there is one.
  ///
  /// - Returns: The group's progress.
  mutating func follow(with new: OperationProgress) -> OperationProgress {
    if let shared { return shared }
    shared = new
    let children = parts.values.filter(\.isReporting).compactMap { part in part.operation.map { ($0, part.weight) } }
    change = ProgressChange(completed: completed, children: children, isOver: isOver)
    return new
  }

  /// What the progress is to be told, once.
  mutating func takeChange() -> (progress: OperationProgress, change: ProgressChange)? {
    guard let shared else { return nil }
    let before = shownTotal
    showTotal()
    defer { change = ProgressChange() }
    change.total = shownTotal - before
    return (shared, change)
  }

  /// It does not go back to zero: on Linux Foundation divides by it.
  private mutating func showTotal() { shownTotal = max(total, min(shownTotal, 1)) }

  /// - Returns: What to take the listener out by, from 1 up. Nil if there is nothing more to tell it.
  mutating func add(_ listener: AsyncStream<Double>.Continuation) -> Int? {
    if hasEndedUpdates { return nil }
    listenersSoFar += 1
    listeners[listenersSoFar] = listener
    return listenersSoFar
  }

  mutating func removeListener(_ number: Int) -> AsyncStream<Double>.Continuation? {
    listeners.removeValue(forKey: number)
  }

  /// There is nothing more to tell anybody.
  mutating func endUpdates() -> [AsyncStream<Double>.Continuation] {
    defer { (listeners, hasEndedUpdates) = ([:], true) }
    return Array(listeners.values)
  }

  /// Those to tell how far the group has come.
  var audience: [AsyncStream<Double>.Continuation] { Array(listeners.values) }
}

/// What a member counts in the progress of its group, if it is not just one unit that is done or is not.
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

/// A change to a group's progress, to be carried out without the engine's lock held.
struct ProgressChange {
  var total = 0
  var completed = 0
  /// Members that report their own units, and what they count.
  var children: [(operation: AsyncOperation, weight: Int)] = []
  /// The group has finished.
  var isOver = false
}
