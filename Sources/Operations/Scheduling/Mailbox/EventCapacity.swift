/// How many events may wait on a ``SerialScheduler``, and what becomes of those that come when it is full.
///
/// It counts what `schedule`, `run` and `send` bring: not what is delivered back, what was delayed and is now due,
/// those who block in `wait`, nor the jobs of actors, which must run or their callers would wait for ever. Whatever is
/// dropped is counted (``SchedulerStatistics/eventsDropped``), and a `run` that is dropped throws
/// ``OperationError/Code/overflow``.
public struct EventCapacity: Sendable, Hashable {
  /// What becomes of an event that finds the scheduler full.
  public enum Policy: Sendable, Hashable, CaseIterable {
    /// ``SerialScheduler/send(_:file:line:)`` and `run` suspend until there is room: first come, first served. A
    /// `schedule`, which cannot suspend, is refused: it returns false.
    case suspend
    /// The event that has waited longest is dropped.
    case dropOldest
    /// The event that was scheduled last is dropped: what has waited longest is served, and in the end the newest.
    case keepLatest
    /// `schedule` returns false, `run` and `send` throw ``OperationError/Code/overflow``.
    case fail
  }

  /// How many events may wait. The one that is being run is not counted.
  public let count: Int
  /// What becomes of an event that finds no room.
  public let policy: Policy

  /// - Precondition: `count` is 1 or more.
  public init(_ count: Int, whenFull policy: Policy) {
    if count < 1 {
      misuse("A scheduler cannot take events with a capacity of \(count): give it room for at least one.")
    }
    self.count = count
    self.policy = policy
  }
}
