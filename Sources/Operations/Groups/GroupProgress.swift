import Foundation

/// What a group has to say through Foundation's Progress: a value that is kept under the engine's lock, and returns the
/// changes to be made when that is released.
///
/// A Progress is made when it is asked for, and kept up to date from then on. A member that reports its own units, as a
/// nested group does, becomes a child of it, by a copy: its own stays free to be anybody's child, which it can be only once.
struct GroupProgress {
  /// An unfinished member that is not just one unit that is done or is not.
  struct Part {
    weak var operation: AsyncOperation?
    let weight: Int
    let isReporting: Bool
  }

  private var total = 0
  private var shownTotal = 0
  private var completed = 0
  private var parts: [ObjectIdentifier: Part] = [:]
  private var progresses: [Progress] = []
  private(set) var shared: Progress?
  private var listeners: [Int: AsyncStream<Double>.Continuation] = [:]
  private var listenersSoFar = 0
  private var isOver = false

  // MARK: Members

  /// Members come, a unit each.
  mutating func add(_ count: Int) -> ProgressChange {
    isOver ? ProgressChange([]) : ProgressChange(progresses, addingToTotal: addToTotal(count))
  }

  /// - Returns: What is to be added to the total that is shown.
  ///
  /// That does not go back to zero: on Linux Foundation divides by it.
  private mutating func addToTotal(_ count: Int) -> Int {
    let before = shownTotal
    total += count
    shownTotal = max(total, min(before, 1))
    return shownTotal - before
  }

  /// An unfinished member is not a simple unit.
  mutating func weigh(_ part: MemberPart) -> ProgressChange? {
    let id = ObjectIdentifier(part.operation)
    let before = parts[id] ?? Part(operation: part.operation, weight: 1, isReporting: false)
    let weight = part.weight
    // A child keeps the portion it came with.
    if isOver || before.isReporting || (weight == before.weight && !part.isReporting) { return nil }
    parts[id] = Part(operation: part.operation, weight: weight, isReporting: part.isReporting)
    return ProgressChange(
      progresses,
      addingToTotal: addToTotal(weight - before.weight),
      children: part.isReporting ? [(part.operation, weight)] : []
    )
  }

  mutating func complete(_ operation: Operation) -> ProgressChange {
    let part = parts.isEmpty ? nil : parts.removeValue(forKey: ObjectIdentifier(operation))
    if isOver { return ProgressChange([]) }
    let weight = part?.weight ?? 1
    completed += weight
    // The units of one that reports are completed by its child progress.
    return ProgressChange(progresses, completing: part?.isReporting == true ? 0 : weight)
  }

  /// The group has ended. One without members, too, has done all it had to do, and so has one that did not wait for them.
  ///
  /// - Returns: Besides the change, the members that report and whose parts are still open.
  mutating func end() -> (change: ProgressChange, unfinished: [AsyncOperation]) {
    if isOver { return (ProgressChange([]), []) }
    isOver = true
    let added = total == 0 ? addToTotal(1) : 0
    let unfinished = parts.values.filter(\.isReporting)
    let left = total - completed - unfinished.reduce(0) { $0 + $1.weight }
    completed += left
    let change = ProgressChange(progresses, addingToTotal: added, completing: left)
    return (change, unfinished.compactMap(\.operation))
  }

  // MARK: Those who follow

  /// Takes up a new progress, and says what is to be told it of the past.
  mutating func follow(_ progress: Progress, isShared: Bool) -> ProgressChange {
    progresses.append(progress)
    if isShared { shared = progress }
    let children = parts.values.filter(\.isReporting).compactMap { part in part.operation.map { ($0, part.weight) } }
    return ProgressChange([progress], addingToTotal: shownTotal, completing: completed, children: children)
  }

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
