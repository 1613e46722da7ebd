import Foundation

/// A state machine that decides which member of a group runs next, and when the group finishes. It has no side effects.
///
/// The engine calls the schedule under the engine's lock, and acts on the result after releasing the lock.
///
/// A member uses a *slot* from the time it is handed out until it finishes or releases the slot. A *runner* is a work
/// item on the engine's queue that takes members one by one.
struct GroupSchedule {
  enum Phase {
    /// The group has not started, and members are only collected.
    case gathering
    case running
    /// Every member has finished. One caller finishes the group.
    case ended
  }

  /// The action that ensures that ready members start.
  enum Help {
    case none
    case addRunner
    /// A runner will take the members when `execute()` returns. The caller must check later whether it has.
    case watch
  }

  /// The next step of a runner.
  enum Take {
    /// A member to start. If `cancelled` is true, the runner must cancel the member first, because the thread that
    /// cancels all members may not have reached it.
    case run(Operation, addingRunner: Bool, cancelled: Bool)
    case stop
  }

  private(set) var phase = Phase.gathering
  /// The number of members that are not accounted for, plus one for each addition in progress, plus one until the group
  /// starts.
  private(set) var unfinished = 1
  private(set) var slotsTaken = 0
  private(set) var isRunnerWaiting = false
  private(set) var ready = ReadyList()

  /// The finished members whose results the group has not processed. One thread processes them, one at a time.
  private(set) var unaccounted: [FinishedMember] = []
  private(set) var isAccounting = false

  /// The number of reasons for which no member starts: failures that the group must process first, and ready members
  /// that are being added in order.
  private(set) var startObstacles = 0

  var limit = OperationQueue.defaultMaxConcurrentOperationCount
  var isSuspended = false { didSet { if !isSuspended { isWaitingForMembers = false } } }
  /// Whether the members have been cancelled. They are started only to finish, so neither the limit nor a suspension
  /// applies.
  var isDraining = false
  /// Whether the group stays open when its last member has finished, until it is closed.
  var staysOpen = false { didSet { if oldValue, !staysOpen { isWaitingForMembers = false } } }
  /// Whether the group started suspended and without members. It stays open until its first member, or until it is
  /// resumed.
  private(set) var isWaitingForMembers = false
  /// Whether the group has been requested to finish as soon as its members have finished.
  var isFinishing = false
  /// Whether there may be a cycle that has not been searched for.
  var isCycleSuspected = false
  /// Whether a check after ``Help/watch`` is pending.
  private(set) var isWatched = false

  /// Whether members remain, but none runs or can run. They wait for operations outside the group, or for each other.
  var hasNothingToRun: Bool { phase == .running && unfinished > 0 && slotsTaken == 0 && ready.isEmpty && !isAccounting }

  /// Whether all remaining members have been started, and no members are being added.
  var hasOnlyExecutingMembers: Bool {
    phase == .running && ready.isEmpty && unfinished == slotsTaken && !isAccounting
  }

  /// Whether the group stays unfinished when all of its members have finished. A group that is cancelled or requested
  /// to finish is closed.
  var isOpen: Bool { (staysOpen || isWaitingForMembers) && !isDraining && !isFinishing }

  /// Whether a runner may take a member now.
  var mayHandOut: Bool {
    if ready.isEmpty || startObstacles > 0 { return false }
    return isDraining || (!isSuspended && (limit < 0 || slotsTaken < limit))
  }

  // MARK: Adding members

  /// Begins to add members. The group cannot finish before the call to ``membersWereAdded(except:)``.
  mutating func beginAdding(_ count: Int) {
    unfinished += count + 1
    isWaitingForMembers = false
  }

  /// Records that the members have been added, except for `skipped` of them.
  ///
  /// - Returns: Whether the caller must add a runner, and whether it must finish the group.
  mutating func membersWereAdded(except skipped: Int = 0) -> (addsRunner: Bool, isDone: Bool) {
    unfinished -= skipped + 1
    return (addRunnerIfUseful(), endIfDone())
  }

  /// Starts the group.
  mutating func begin() {
    phase = .running
    isWaitingForMembers = isSuspended && unfinished == 1
  }

  /// Adds a member that has become ready.
  ///
  /// - Parameter takenNext: Whether the runner whose member made this member ready is about to take the next member.
  mutating func becameReady(_ member: ReadyMember, takenNext: Bool) -> Help {
    ready.append(member.operation, member.priority, isFirst: member.isReturning)
    return help(takenNext: takenNext)
  }

  /// Adds members that were ready when they were added to the group.
  mutating func append(_ members: [ReadyMember]) {
    for member in members { ready.append(member.operation, member.priority) }
  }

  /// Takes all ready members, because the caller adds them again in another order.
  mutating func takeReady() -> [Operation] {
    var members: [Operation] = []
    while let member = ready.popFirst() { members.append(member) }
    return members
  }

  private mutating func help(takenNext: Bool) -> Help {
    guard takenNext else { return addRunnerIfUseful() ? .addRunner : .none }
    guard !isWatched, !isRunnerWaiting, mayHandOut else { return .none }
    isWatched = true
    return .watch
  }

  /// Ends the watch. The runner that was about to take the next member may still be occupied.
  ///
  /// - Returns: Whether the caller must add a runner.
  mutating func endWatch() -> Bool {
    isWatched = false
    return addRunnerIfUseful()
  }

  /// Requests a runner if there is a member to take.
  ///
  /// - Returns: Whether the caller must add a runner.
  mutating func addRunnerIfUseful() -> Bool {
    guard phase == .running, !isRunnerWaiting, mayHandOut else { return false }
    isRunnerWaiting = true
    return true
  }

  // MARK: Taking members

  mutating func runnerBegan() { isRunnerWaiting = false }

  /// Takes the next member that may start.
  mutating func take() -> Take {
    guard mayHandOut, let member = ready.popFirst() else { return .stop }
    slotsTaken += 1
    return .run(member, addingRunner: addRunnerIfUseful(), cancelled: isDraining)
  }

  // MARK: Finishing members

  /// Postpones the start of members, until the call to ``resumeStarts()``.
  mutating func postponeStarts() { startObstacles += 1 }

  /// Ends a postponement.
  ///
  /// - Returns: Whether the caller must add a runner.
  mutating func resumeStarts() -> Bool {
    startObstacles -= 1
    return addRunnerIfUseful()
  }

  /// Releases the slot of a member.
  ///
  /// - Parameter takenNext: As for ``becameReady(_:takenNext:)``.
  mutating func releaseSlot(takenNext: Bool) -> Help {
    slotsTaken -= 1
    return help(takenNext: takenNext)
  }

  /// Begins to process the result of a member that has finished.
  ///
  /// - Returns: Whether the caller must process it. Otherwise another thread that is processing results also processes
  ///   this one.
  mutating func beginAccounting(for member: FinishedMember) -> Bool {
    if isAccounting {
      unaccounted.append(member)
      return false
    }
    isAccounting = true
    return true
  }

  /// Takes the results that have arrived since the last call.
  ///
  /// - Returns: The members whose results the caller must process next. If there are none, the processing has ended.
  mutating func nextToAccount() -> [FinishedMember] {
    defer { unaccounted = [] }
    isAccounting = !unaccounted.isEmpty
    return unaccounted
  }

  /// Records that the result of one member has been processed.
  mutating func accounted() { unfinished -= 1 }

  /// Ends the schedule if no members remain and the group is not open.
  ///
  /// - Returns: Whether the caller must finish the group.
  mutating func endIfDone() -> Bool {
    guard phase == .running, unfinished == 0, !isAccounting, !isOpen else { return false }
    phase = .ended
    return true
  }
}

/// The ready members of a group, ordered by queue priority and first in, first out within a priority.
///
/// Adding and taking a member cost O(1).
struct ReadyList {
  private var urgent = ArrayDeque<Operation>()
  private var high = ArrayDeque<Operation>()
  private var normal = ArrayDeque<Operation>()
  private var low = ArrayDeque<Operation>()
  private var lowest = ArrayDeque<Operation>()
  private(set) var count = 0
  /// The number of members whose priority is not normal. Usually zero, and then only one list is checked.
  private var exceptions = 0

  var isEmpty: Bool { count == 0 }

  /// Adds a member.
  ///
  /// - Parameter priority: The operation's `queuePriority`. The caller reads it without a lock, because a subclass can
  ///   override it.
  /// - Parameter isFirst: Whether the member goes before all others of its priority.
  mutating func append(_ operation: Operation, _ priority: Operation.QueuePriority, isFirst: Bool = false) {
    func add(to list: inout ArrayDeque<Operation>) {
      if isFirst { list.prepend([operation]) } else { list.append(operation) }
    }
    count += 1
    if priority == .normal { return add(to: &normal) }
    exceptions += 1
    switch priority {
    case .veryHigh: add(to: &urgent)
    case .high: add(to: &high)
    case .low: add(to: &low)
    case .veryLow: add(to: &lowest)
    case .normal: fallthrough
    @unknown default:
      exceptions -= 1
      add(to: &normal)
    }
  }

  mutating func popFirst() -> Operation? {
    guard count > 0 else { return nil }
    count -= 1
    if exceptions == 0 { return normal.popFirst() }
    if let operation = urgent.popFirst() ?? high.popFirst() {
      exceptions -= 1
      return operation
    }
    if let operation = normal.popFirst() { return operation }
    exceptions -= 1
    return low.popFirst() ?? lowest.popFirst()
  }
}

/// A member that can be started.
struct ReadyMember {
  let operation: Operation
  let priority: Operation.QueuePriority
  /// Whether the member had a slot, and returned it because its permit had been given to another operation.
  let isReturning: Bool

  init(_ operation: Operation, isReturning: Bool = false) {
    self.operation = operation
    self.isReturning = isReturning
    priority = operation.queuePriority
  }
}
