import Foundation

/// Which member of a group may run next, and when the group is at its end: a value, without effects.
///
/// The engine asks it under its lock and acts on the answer afterwards. A *slot* is taken by every member that has been
/// handed out and has not finished. A *runner* is a piece of work on the engine's queue that takes members one by one.
struct GroupSchedule {
  enum Phase {
    /// The group has not begun: members are only collected.
    case gathering
    case running
    /// Every member has finished, and the right to end the group has been given away.
    case ended
  }

  /// What members that can be started need.
  enum Help {
    case none
    case addRunner
    /// A runner is about to take them, as soon as `execute()` returns. Look after a while whether it has.
    case watch
  }

  enum Take {
    /// - Parameter cancelled: The member is only to be finished; whoever cancels them all may not have come to it yet.
    case run(Operation, addingRunner: Bool, cancelled: Bool)
    case stop
  }

  private(set) var phase = Phase.gathering
  /// Members, and admissions under way, that have not been accounted for. The group's beginning counts as one, too.
  private(set) var unfinished = 1
  private(set) var slotsTaken = 0
  private(set) var isRunnerWaiting = false
  private(set) var ready = ReadyList()

  /// Finished members whose result the group has not looked at. One thread looks at them, one at a time.
  private(set) var unaccounted: [FinishedMember] = []
  private(set) var isAccounting = false

  /// Members that failed, and whose failure the group has to see before another member starts.
  private(set) var unseenFailures = 0

  var limit = OperationQueue.defaultMaxConcurrentOperationCount
  var isSuspended = false { didSet { if !isSuspended { isWaitingForMembers = false } } }
  /// The members have been cancelled: they are only started to be finished, which neither limit nor suspension delays.
  var isWindingDown = false
  /// The group stays open for more members after its last one, until it is closed.
  var staysOpen = false { didSet { if oldValue, !staysOpen { isWaitingForMembers = false } } }
  /// The group has begun suspended and without members: it stays open until the first one, or until it is resumed.
  private(set) var isWaitingForMembers = false
  /// The group has been told to finish: it waits for no members but those it has.
  var isFinishing = false
  /// A circle may have come about that has not been looked for.
  var isCycleSuspected = false
  private(set) var isWatched = false
  /// Some members need permits, which they request in the order in which they are handed out.
  var handsOutInOrder = false
  /// A runner has taken such a member, and has not requested its permit: the next one is not handed out before.
  private(set) var isHandingOut = false

  /// Nothing runs, nothing can run, and yet members are left: they wait for something outside, or for each other.
  var isStuck: Bool { phase == .running && unfinished > 0 && slotsTaken == 0 && ready.isEmpty && !isAccounting }

  /// Whoever is left has been started, and nobody else is to come.
  var hasOnlyExecutingMembers: Bool {
    phase == .running && ready.isEmpty && unfinished == slotsTaken && !isAccounting
  }

  /// Whether the group does not finish even if all of its members have. Winding down and being told to finish close it.
  var isOpen: Bool { (staysOpen || isWaitingForMembers) && !isWindingDown && !isFinishing }

  var mayHandOut: Bool {
    if ready.isEmpty || unseenFailures > 0 || isHandingOut { return false }
    return isWindingDown || (!isSuspended && (limit < 0 || slotsTaken < limit))
  }

  // MARK: Members come

  /// Members come. The group cannot end before ``admitted()``, which says that all of them are enrolled.
  mutating func admit(_ count: Int) {
    unfinished += count + 1
    isWaitingForMembers = false
  }

  /// The members that were coming have been enrolled, with these exceptions.
  ///
  /// - Returns: Whether a runner is to be added, and whether the group is at its end.
  mutating func admitted(except skipped: Int = 0) -> (addsRunner: Bool, isDone: Bool) {
    unfinished -= skipped + 1
    return (addRunnerIfUseful(), endIfDone())
  }

  /// The group begins.
  mutating func begin() {
    phase = .running
    isWaitingForMembers = isSuspended && unfinished == 1
  }

  /// - Parameter takenNext: The runner whose member made this one ready is about to take the next.
  mutating func becameReady(_ member: ReadyMember, takenNext: Bool) -> Help {
    ready.append(member.operation, member.priority)
    return help(takenNext: takenNext)
  }

  /// Members that are ready already when they come.
  mutating func append(_ members: [ReadyMember]) {
    for member in members { ready.append(member.operation, member.priority) }
  }

  private mutating func help(takenNext: Bool) -> Help {
    guard takenNext else { return addRunnerIfUseful() ? .addRunner : .none }
    guard !isWatched, !isRunnerWaiting, mayHandOut else { return .none }
    isWatched = true
    return .watch
  }

  /// The time is up: whoever was about to take the next member may have had something else to do.
  mutating func endWatch() -> Bool {
    isWatched = false
    return addRunnerIfUseful()
  }

  mutating func addRunnerIfUseful() -> Bool {
    guard phase == .running, !isRunnerWaiting, mayHandOut else { return false }
    isRunnerWaiting = true
    return true
  }

  // MARK: Runners take

  mutating func runnerBegan() { isRunnerWaiting = false }

  mutating func take() -> Take {
    guard mayHandOut, let member = ready.popFirst() else { return .stop }
    slotsTaken += 1
    isHandingOut = handsOutInOrder
    return .run(member, addingRunner: addRunnerIfUseful(), cancelled: isWindingDown)
  }

  /// The permit of the member that was taken has been requested.
  mutating func handedOut() -> Bool {
    isHandingOut = false
    return addRunnerIfUseful()
  }

  // MARK: Members end

  /// A member failed: no other starts until the group has seen it.
  mutating func postponeStarts() { unseenFailures += 1 }

  /// - Returns: Whether to add a runner.
  mutating func resumeStarts() -> Bool {
    unseenFailures -= 1
    return addRunnerIfUseful()
  }

  /// Gives the slot of a finished member back.
  ///
  /// - Parameter takenNext: As for ``becameReady(_:takenNext:)``.
  mutating func freeSlot(takenNext: Bool) -> Help {
    slotsTaken -= 1
    return help(takenNext: takenNext)
  }

  /// The group wants to look at the result of a member that has finished.
  ///
  /// - Returns: Whether the caller is to do it. Otherwise somebody is at it, who will see to this one, too.
  mutating func beginAccounting(for member: FinishedMember) -> Bool {
    if isAccounting {
      unaccounted.append(member)
      return false
    }
    isAccounting = true
    return true
  }

  /// - Returns: The members whose results are to be looked at next. If there are none, the accounting is over.
  mutating func nextToAccount() -> [FinishedMember] {
    defer { unaccounted = [] }
    isAccounting = !unaccounted.isEmpty
    return unaccounted
  }

  /// Nothing is left to do for one member.
  mutating func accounted() { unfinished -= 1 }

  mutating func endIfDone() -> Bool {
    guard phase == .running, unfinished == 0, !isAccounting, !isOpen else { return false }
    phase = .ended
    return true
  }
}
