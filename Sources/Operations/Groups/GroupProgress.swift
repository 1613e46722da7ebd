import Foundation

/// What a group has to say through Foundation's Progress: a value that is kept under the engine's lock, and collects
/// the changes to be made when that is released.
///
/// A Progress is made when it is asked for, and kept up to date from then on. A member that reports its own units, as a
/// nested group does, becomes a child of it, by a copy: its own stays free to be anybody's child, which it can be only
/// once.
struct GroupProgress {
  /// An unfinished member that is not just one unit that is done or is not.
  struct Part {
    weak var operation: AsyncOperation?
    let weight: Int
    let isReporting: Bool
  }

  private var total = 0
  /// The total that the progresses have been told.
  private var shownTotal = 0
  private var completed = 0
  private var parts: [ObjectIdentifier: Part] = [:]
  private var isOver = false
  private var progresses: [Progress] = []
  private(set) var shared: Progress?
  /// What they have not been told yet.
  private var change = ProgressChange()
  private var listeners: [Int: AsyncStream<Double>.Continuation] = [:]
  private var listenersSoFar = 0

  /// Somebody has asked for a progress.
  var isFollowed: Bool { !progresses.isEmpty }

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
    if isFollowed { change.completed += left }
    return unfinished.compactMap(\.operation)
  }

  // MARK: Those who follow

  /// Takes up a new progress. What the others have not been told yet has to have been taken.
  ///
  /// - Returns: What is to be told it of the past.
  mutating func follow(_ progress: Progress, isShared: Bool) -> ProgressChange {
    progresses.append(progress)
    if isShared { shared = progress }
    showTotal()
    let children = parts.values.filter(\.isReporting).compactMap { part in part.operation.map { ($0, part.weight) } }
    return ProgressChange(total: shownTotal, completed: completed, children: children)
  }

  /// What the progresses are to be told, once.
  mutating func takeChange() -> (change: ProgressChange, progresses: [Progress]) {
    let before = shownTotal
    showTotal()
    defer { change = ProgressChange() }
    change.total = shownTotal - before
    return (change, progresses)
  }

  /// It does not go back to zero: on Linux Foundation divides by it.
  private mutating func showTotal() { shownTotal = max(total, min(shownTotal, 1)) }

  /// - Returns: What to take the listener out by.
  mutating func add(_ listener: AsyncStream<Double>.Continuation) -> Int {
    listenersSoFar += 1
    listeners[listenersSoFar] = listener
    return listenersSoFar
  }

  mutating func removeListener(_ number: Int) -> AsyncStream<Double>.Continuation? {
    listeners.removeValue(forKey: number)
  }

  mutating func takeListeners() -> [AsyncStream<Double>.Continuation] {
    defer { listeners = [:] }
    return Array(listeners.values)
  }

  /// Those to tell how far the group has come, and what says so.
  var audience: (progress: Progress, listeners: [AsyncStream<Double>.Continuation])? {
    guard !listeners.isEmpty, let shared else { return nil }
    return (shared, Array(listeners.values))
  }
}
