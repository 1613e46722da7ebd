import Foundation

/// A value that decides which member of a group runs next, and when the group finishes. It has no effects.
///
/// The engine calls it under its lock and acts on the answer after releasing the lock. A *slot* is in use by every
/// member that has been handed out and has neither finished nor released its slot. A *runner* is a piece of work on
/// the engine's queue that takes members one by one.
struct GroupSchedule {
  enum Phase {
    /// The group has not started, and members are only collected.
    case gathering
    case running
    /// Every member has finished, and one caller has been given the right to finish the group.
    case ended
  }

  /// What the ready members need to be started.
  enum Help {
    case none
    case addRunner
    /// A runner will take them as soon as `execute()` returns. The caller must check after a while whether it has.
    case watch
  }

  enum Take {
    /// A member to start. If `cancelled` is true, the member only needs to finish, and the thread that cancels all
    /// members may not have cancelled it yet.
    case run(Operation, addingRunner: Bool, cancelled: Bool)
    case stop
  }

  private(set) var phase = Phase.gathering
  /// The number of members, and of additions in progress, that are not accounted for. The group's start also counts
  /// as one.
  private(set) var unfinished = 1
  private(set) var slotsTaken = 0
  private(set) var isRunnerWaiting = false
  private(set) var ready = ReadyList()

  /// The finished members whose results the group has not processed. One thread processes them, one at a time.
  private(set) var unaccounted: [FinishedMember] = []
  private(set) var isAccounting = false

  /// The number of failed members whose failure the group must process before another member starts.
  private(set) var unseenFailures = 0

  var limit = OperationQueue.defaultMaxConcurrentOperationCount
  var isSuspended = false { didSet { if !isSuspended { isWaitingForMembers = false } } }
  /// Whether the members have been cancelled. They are only started to finish, which neither limit nor suspension
  /// delays.
  var isDraining = false
  /// Whether the group stays open for more members after its last one, until it is closed.
  var staysOpen = false { didSet { if oldValue, !staysOpen { isWaitingForMembers = false } } }
  /// Whether the group started suspended and without members. It stays open until its first member, or until it is
  /// resumed.
  private(set) var isWaitingForMembers = false
  /// Whether the group has been requested to finish, so that it waits only for the members that it has.
  var isFinishing = false
  /// Whether there may be a cycle that has not been searched for.
  var isCycleSuspected = false
  private(set) var isWatched = false
  /// Whether some members need permits, which are requested in the order in which members are handed out.
  var handsOutInOrder = false
  /// Whether a runner has taken such a member and not requested its permit. The next member is handed out after that.
  private(set) var isHandingOut = false

  /// Whether members remain, but none runs or can run. They wait for operations outside the group, or for each other.
  var isStuck: Bool { phase == .running && unfinished > 0 && slotsTaken == 0 && ready.isEmpty && !isAccounting }

  /// Whether all remaining members have been started, and no others are being added.
  var hasOnlyExecutingMembers: Bool {
    phase == .running && ready.isEmpty && unfinished == slotsTaken && !isAccounting
  }

  /// Whether the group does not finish even if all of its members have. Cancelling and requesting to finish close the
  /// group.
  var isOpen: Bool { (staysOpen || isWaitingForMembers) && !isDraining && !isFinishing }

  var mayHandOut: Bool {
    if ready.isEmpty || unseenFailures > 0 || isHandingOut { return false }
    return isDraining || (!isSuspended && (limit < 0 || slotsTaken < limit))
  }

  // MARK: Adding members

  /// Begins to add members. The group cannot finish before ``membersWereAdded(except:)``, which records that all of them are
  /// enrolled.
  mutating func beginAdding(_ count: Int) {
    unfinished += count + 1
    isWaitingForMembers = false
  }

  /// Records that the members have been enrolled, except for `skipped` of them.
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
  /// - Parameter takenNext: Whether the runner whose member made this one ready is about to take the next.
  mutating func becameReady(_ member: ReadyMember, takenNext: Bool) -> Help {
    ready.append(member.operation, member.priority)
    return help(takenNext: takenNext)
  }

  /// Adds members that were ready when they were added to the group.
  mutating func append(_ members: [ReadyMember]) {
    for member in members { ready.append(member.operation, member.priority) }
  }

  private mutating func help(takenNext: Bool) -> Help {
    guard takenNext else { return addRunnerIfUseful() ? .addRunner : .none }
    guard !isWatched, !isRunnerWaiting, mayHandOut else { return .none }
    isWatched = true
    return .watch
  }

  /// Ends the watch after its time. The runner that was about to take the next member may be occupied with other
  /// work.
  mutating func endWatch() -> Bool {
    isWatched = false
    return addRunnerIfUseful()
  }

  mutating func addRunnerIfUseful() -> Bool {
    guard phase == .running, !isRunnerWaiting, mayHandOut else { return false }
    isRunnerWaiting = true
    return true
  }

  // MARK: Taking members

  mutating func runnerBegan() { isRunnerWaiting = false }

  mutating func take() -> Take {
    guard mayHandOut, let member = ready.popFirst() else { return .stop }
    slotsTaken += 1
    isHandingOut = handsOutInOrder
    return .run(member, addingRunner: addRunnerIfUseful(), cancelled: isDraining)
  }

  /// Records that the permit of the member that was taken has been requested.
  mutating func handedOut() -> Bool {
    isHandingOut = false
    return addRunnerIfUseful()
  }

  // MARK: Finishing members

  /// Records that a member failed. No other member starts until the group has processed the failure.
  mutating func postponeStarts() { unseenFailures += 1 }

  /// Records that the group has processed the failure of a member.
  ///
  /// - Returns: Whether the caller must add a runner.
  mutating func resumeStarts() -> Bool {
    unseenFailures -= 1
    return addRunnerIfUseful()
  }

  /// Releases the slot of a member.
  ///
  /// - Parameter takenNext: As for ``becameReady(_:takenNext:)``.
  mutating func freeSlot(takenNext: Bool) -> Help {
    slotsTaken -= 1
    return help(takenNext: takenNext)
  }

  /// Begins to process the result of a member that has finished.
  ///
  /// - Returns: Whether the caller must process it. Otherwise another thread is processing results, and processes
  ///   this one too.
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

  /// Records that nothing is left to do for one member.
  mutating func accounted() { unfinished -= 1 }

  mutating func endIfDone() -> Bool {
    guard phase == .running, unfinished == 0, !isAccounting, !isOpen else { return false }
    phase = .ended
    return true
  }
}

/// The ready members of a group, ordered by queue priority and first in, first out within a priority.
///
/// Adding and taking a member are O(1).
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
  mutating func append(_ operation: Operation, _ priority: Operation.QueuePriority) {
    count += 1
    if priority == .normal { return normal.append(operation) }
    exceptions += 1
    switch priority {
    case .veryHigh: urgent.append(operation)
    case .high: high.append(operation)
    case .low: low.append(operation)
    case .veryLow: lowest.append(operation)
    case .normal: fallthrough
    @unknown default:
      exceptions -= 1
      normal.append(operation)
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

  init(_ operation: Operation) {
    self.operation = operation
    priority = operation.queuePriority
  }
}
