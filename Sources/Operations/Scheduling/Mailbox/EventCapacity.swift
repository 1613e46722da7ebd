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
    /// The waiting event that was scheduled last is dropped in favor of the new one, so the oldest events and the
    /// latest one remain.
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
  public init(_ count: Int, whenFull policy: Policy) {
    if count < 1 {
      misuse("A scheduler with a capacity of \(count) could never accept an event. Use a capacity of at least 1.")
    }
    self.count = count
    self.policy = policy
  }
}

/// The waiting and suspended events of a mailbox.
struct EventRoom {
  private let capacity: EventCapacity
  private var waitingCount = 0
  /// The waiting events in order, for the policies that drop one of them. Tickets that are gone stay until they are
  /// skipped or compacted.
  var waiting = ArrayDeque<EventTicket>()
  /// The suspended events in order. All have the same deadline.
  var suspended = DeadlineQueue<Duration, EventTicket>()

  init(_ capacity: EventCapacity) { self.capacity = capacity }

  /// Nil if there is room for a new event, which must not overtake a suspended one.
  var policyIfFull: EventCapacity.Policy? {
    waitingCount < capacity.count && suspended.count == 0 ? nil : capacity.policy
  }

  mutating func addWaiting(_ ticket: EventTicket) {
    waitingCount += 1
    if capacity.policy == .dropOldest || capacity.policy == .replaceLatest { waiting.append(ticket) }
  }

  mutating func removeWaiting() {
    waitingCount -= 1
    // Once they are the majority, removes the tickets that are gone, in amortized constant time for each ticket.
    if waiting.count >= 64, waiting.count > waitingCount * 2 { waiting.removeAll(where: \.isGone) }
  }

  var canAcceptSuspended: Bool { suspended.count > 0 && waitingCount < capacity.count }
}
