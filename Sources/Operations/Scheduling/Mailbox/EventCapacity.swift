/// The number of events that may wait on a ``SerialScheduler``, and what happens to further events.
///
/// Only events from `schedule`, `run` and `send` are counted. Delivered results, delayed events that are due, bodies of
/// `wait`, and jobs of actors are always accepted.
///
/// ``SchedulerStatistics/eventsDropped`` counts dropped events. A `run` whose event is dropped throws
/// ``OperationError/Code/overflow``.
public struct EventCapacity: Sendable, Hashable {
  /// What happens to an event that is scheduled while the scheduler is full.
  public enum Policy: Sendable, Hashable, CaseIterable {
    /// ``SerialScheduler/send(_:file:line:)`` and `run` suspend until there is room, in order of arrival. `schedule`
    /// cannot suspend, so it returns false.
    case suspend
    /// The event that has waited longest is dropped in favor of the new one.
    case dropOldest
    /// The waiting event that was scheduled last is dropped in favor of the new one, so the oldest events remain.
    case replaceLatest
    /// `schedule` returns false. `run` and `send` throw ``OperationError/Code/overflow``.
    case fail
  }

  /// The number of events that may wait. An event that is running does not count.
  public let count: Int
  /// What happens to an event that is scheduled while the scheduler is full.
  public let policy: Policy

  /// Creates a capacity.
  ///
  /// - Precondition: `count` is at least 1.
  public init(_ count: Int, whenFull policy: Policy, file: StaticString = #fileID, line: UInt = #line) {
    if count < 1 {
      let problem = "A scheduler with a capacity of \(count) could never accept an event."
      misuse(problem + " Use a capacity of at least 1.", file: file, line: line)
    }
    self.count = count
    self.policy = policy
  }
}
