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

  enum Take {
    case run(Operation, addingRunner: Bool)
    case stop
  }

  private(set) var phase = Phase.gathering
  /// Members, and admissions under way, that have not been accounted for.
  private(set) var unfinished = 0
  private(set) var slotsTaken = 0
  private(set) var isRunnerWaiting = false
  private var ready = ReadyList()

  /// Finished members whose result the group has not looked at. One thread looks at them, one at a time.
  private var unaccounted: [Operation] = []
  private var isAccounting = false

  var limit = OperationQueue.defaultMaxConcurrentOperationCount
  var isSuspended = false
  /// The members have been cancelled: they are only started to be finished, which neither limit nor suspension delays.
  var isWindingDown = false
  /// A circle may have come about that has not been looked for.
  var isCycleSuspected = false

  /// Nothing runs, nothing can run, and yet members are left: they wait for something outside, or for each other.
  var isStuck: Bool { unfinished > 0 && slotsTaken == 0 && ready.isEmpty && !isAccounting }

  private var mayHandOut: Bool {
    if ready.isEmpty { return false }
    return isWindingDown || (!isSuspended && (limit < 0 || slotsTaken < limit))
  }

  // MARK: Members come

  /// The group begins. It cannot end before the admission of `count` members is over: see ``admitted()``.
  mutating func begin(admitting count: Int) {
    phase = .running
    unfinished = count + 1
  }

  /// Members come while the group is running.
  mutating func admit(_ count: Int) { unfinished += count + 1 }

  /// The members that are coming have been enrolled.
  ///
  /// - Returns: Whether the group is at its end.
  mutating func admitted() -> Bool {
    unfinished -= 1
    return endIfDone()
  }

  /// - Parameter takenNext: The runner whose member made this one ready will look for the next member itself.
  /// - Returns: Whether a runner is to be added.
  mutating func becameReady(_ member: Operation, takenNext: Bool) -> Bool {
    ready.append(member)
    return takenNext ? false : addRunnerIfUseful()
  }

  mutating func addRunnerIfUseful() -> Bool {
    guard !isRunnerWaiting, mayHandOut else { return false }
    isRunnerWaiting = true
    return true
  }

  // MARK: Runners take

  mutating func runnerBegan() { isRunnerWaiting = false }

  mutating func take() -> Take {
    guard mayHandOut, let member = ready.popFirst() else { return .stop }
    slotsTaken += 1
    return .run(member, addingRunner: addRunnerIfUseful())
  }

  /// A member that was handed out turned out to wait for one more.
  mutating func handBack(takenNext: Bool) -> Bool {
    slotsTaken -= 1
    return takenNext ? false : addRunnerIfUseful()
  }

  // MARK: Members end

  /// - Parameter takenNext: As for ``becameReady(_:takenNext:)``.
  /// - Returns: Whether a runner is to be added, and whether the caller is to do the accounting.
  mutating func finished(_ member: Operation, takenNext: Bool) -> (addsRunner: Bool, accounts: Bool) {
    slotsTaken -= 1
    let addsRunner = takenNext ? false : addRunnerIfUseful()
    if isAccounting {
      unaccounted.append(member)
      return (addsRunner, false)
    }
    isAccounting = true
    return (addsRunner, true)
  }

  /// The result of a member has been looked at.
  ///
  /// - Returns: Those that are to be looked at next, and whether the group is at its end.
  mutating func accounted(for count: Int) -> (next: [Operation], isDone: Bool) {
    unfinished -= count
    let next = unaccounted
    unaccounted = []
    isAccounting = !next.isEmpty
    return (next, endIfDone())
  }

  /// A group that is suspended before it has had a member waits for one.
  var waitsForMembers = false {
    didSet { if oldValue != waitsForMembers { unfinished += waitsForMembers ? 1 : -1 } }
  }

  mutating func endIfDone() -> Bool {
    guard phase == .running, unfinished == 0, !isAccounting else { return false }
    phase = .ended
    return true
  }
}
