import Foundation

/// Decides which member of a group runs next, and when the group finishes. A member uses a *slot* from the time it is
/// handed out until it finishes or releases the slot. A *runner* is a work item that takes members one by one.
struct GroupSchedule {
  private(set) var life = Life.gathering(membersArrive: false)
  private(set) var openness = Openness.none
  private(set) var endRequest = EndRequest.none
  /// The number of members whose results have not been processed.
  private(set) var unfinishedMembers = 0
  /// The number of calls that are adding members or starting the group, which does not end meanwhile.
  private(set) var additions = 0
  var ready = ReadyList()
  /// The members that have been called, and need a slot to take their keys.
  var called = RankedList<KeyRequest>()
  /// The flows of members that wait for their keys. The members retain them.
  var keyedFlows: [ObjectIdentifier: ExclusivityKey] = [:]
  /// The members that have a slot, and their keys with it, and wait for a runner to start them.
  var granted = ArrayDeque<HandOut>()
  /// The cancelled members that wait to be started. They finish at once, so neither the limit nor a suspension applies.
  var cancelled = ArrayDeque<AsyncOperation>()
  /// The results that have arrived while one thread processes earlier ones, one at a time. Nil if no thread does.
  private(set) var waitingResults: [AsyncOperation]?
  /// The number of additions that postpone starts, and of members, but one, that arrive together. Meanwhile no member is
  /// handed out or takes keys, so that the most urgent one comes first.
  var startObstacles = 0
  var isRunnerRequested = false
  /// Whether a check after ``RunnerRequest/watch`` is pending. A runner can be requested meanwhile.
  private(set) var isRunnerWatched = false

  var limit = OperationQueue.defaultMaxConcurrentOperationCount { didSet { takeBackSlots() } }
  var isSuspended = false { didSet { if isSuspended { takeBackSlots() } else { stopAwaitingMember() } } }

  var staysOpen: Bool {
    get { openness == .untilClosed }
    set { if newValue { openness = .untilClosed } else if staysOpen { openness = .none } }
  }

  var isDraining: Bool { endRequest >= .drain }
  var isOpen: Bool { openness != .none && endRequest == .none }

  /// Whether an event of a member comes too late. The group must not retain the member, which may retain the group.
  var hasEnded: Bool { !life.isGathering && !life.isUnderway }

  private var hasNoMembers: Bool { unfinishedMembers == 0 && additions == 0 }

  @inline(__always)  // Otherwise each call would copy the schedule. The same applies to the other inlined getters.
  var mayHandOut: Bool {
    if startObstacles > 0 { return false }
    return !granted.isEmpty || !cancelled.isEmpty || (!ready.isEmpty && (isDraining || freeSlots > 0))
  }

  private mutating func stopAwaitingMember() { if openness == .untilFirstMember { openness = .none } }

  // MARK: The life of the group

  /// Starts the group, which does not end before ``endAddition(skipped:)``. Returns whether the members arrive now, so that
  /// none starts meanwhile. Nil if the group has been started before.
  mutating func start(_ group: GroupOperation, in queue: GroupQueue, draining: Bool) -> Bool? {
    guard case .gathering(let membersArrive) = life else { return nil }
    life = draining ? .running(group, queue) : .starting(group, queue)
    if draining { request(.drain) }
    if membersArrive { startObstacles += 1 }
    if isSuspended, hasNoMembers, openness == .none { openness = .untilFirstMember }
    additions += 1
    return membersArrive
  }

  /// Transitions from starting to running, on the first call only. Returns the group, whose timeout the caller starts.
  mutating func beginRunning() -> GroupOperation? {
    guard case .starting(let group, let queue) = life else { return nil }
    life = .running(group, queue)
    return group
  }

  /// - Returns: Whether there was no such request, and no stronger one.
  @discardableResult
  mutating func request(_ end: EndRequest) -> Bool {
    guard end > endRequest else { return false }
    endRequest = end
    return true
  }

  /// Records that the group finishes, possibly before its members. The caller must release the returned group.
  mutating func abandon() -> GroupOperation? {
    switch life {
    case .starting(let group, let queue), .running(let group, let queue): life = .abandoned(group, queue)
    // Another thread is about to end the life.
    case .idle(let queue): life = .orphaned(queue)
    case .gathering, .abandoned, .orphaned, .ended: return nil
    }
    return orphanIfOnlyExecuting()
  }

  private mutating func orphanIfOnlyExecuting() -> GroupOperation? {
    guard case .abandoned(let group, let queue) = life else { return nil }
    guard granted.isEmpty, unfinishedMembers == ready.slotsInUse, additions == 0, waitingResults == nil else {
      return nil
    }
    life = .orphaned(queue)
    return group
  }

  mutating func disband() {
    if life.isOver { return }
    self = GroupSchedule()
    life = .ended
  }

  /// Ends the life of a group that is done. Of an open group without members, or an abandoned one whose members all
  /// execute, only the reference to the group is released.
  mutating func endIfDone() -> Outcome {
    guard life.isUnderway, hasNoMembers, waitingResults == nil else {
      return orphanIfOnlyExecuting().map { .release($0) } ?? .none
    }
    if isOpen {
      guard case .running(let group, let queue) = life, ready.slotsInUse == 0 else { return .none }
      life = .idle(queue)
      return .release(group)
    }
    defer { life = .ended }
    return .end(life)
  }

  /// Retains an open group without members, which is about to change.
  mutating func wake(_ group: GroupOperation?) {
    if let group, case .idle(let queue) = life { life = .running(group, queue) }
  }

  // MARK: Adding members

  /// Begins to add members, until ``endAddition(skipped:)``.
  mutating func beginAddition(of count: Int) {
    unfinishedMembers += count
    additions += 1
    stopAwaitingMember()
  }

  mutating func endAddition(skipped: Int = 0) {
    unfinishedMembers -= skipped
    additions -= 1
  }

  /// Returns whether the group has started, so that members arrive now. Otherwise all arrive when it starts.
  mutating func requestArrival() -> Bool {
    guard life.isGathering else { return true }
    life = .gathering(membersArrive: true)
    return false
  }

  /// `number` is that of a member that has arrived before.
  mutating func becameReady(
    _ member: AsyncOperation,
    _ priority: Operation.QueuePriority,
    of flow: ExclusivityKey? = nil,
    number: Int? = nil
  ) {
    if hasEnded { return }
    ready.insert(member, ReadyList.Rank(priority: priority.rawValue, ticket: number ?? ready.makeNumber()), of: flow)
  }

  /// Adds a cancelled member. While the group drains, a ready one needs no other entry.
  mutating func wasCancelled(_ member: AsyncOperation, wasNotReady: Bool) {
    if hasEnded || (isDraining && !wasNotReady) { return }
    if !wasNotReady { ready.remove(ObjectIdentifier(member)) }
    cancelled.append(member)
  }

  /// Removes the entries of members that have finished, which the caller releases.
  mutating func takeStaleEntries() -> [AnyObject] {
    let granted = exchange(&granted, with: ArrayDeque()).all.compactMap { $0?.member }
    return ready.takeAll() + called.removeAll() + granted
      + exchange(&cancelled, with: ArrayDeque()).all.compactMap { $0 }
  }

  mutating func move(_ member: AsyncOperation, _ keys: KeyRequest?, to priority: Operation.QueuePriority) {
    guard requestArrival() else { return }
    if let keys { called.move(keys, to: priority) } else { ready.move(member, to: priority) }
  }

  // MARK: Running members

  /// `runnerTakesNext` means that the runner whose member made another one ready is about to take the next member.
  mutating func requestRunner(runnerTakesNext: Bool = false) -> RunnerRequest {
    guard life.isUnderway, !isRunnerRequested, mayHandOut else { return .none }
    if runnerTakesNext {
      if isRunnerWatched { return .none }
      isRunnerWatched = true
      return .watch
    }
    isRunnerRequested = true
    return .addRunner
  }

  /// The runner that was about to take the next member may still be occupied.
  mutating func endWatch() -> RunnerRequest {
    isRunnerWatched = false
    return requestRunner()
  }

  /// Returns the next member, which is not taken yet. Nil if there is none, so that the requested runner is not needed.
  mutating func nextForRequestedRunner() -> AsyncOperation? {
    isRunnerRequested = mayHandOut
    return isRunnerRequested ? next : nil
  }

  @inline(__always) private var next: AsyncOperation? { granted.first?.member ?? cancelled.first ?? ready.first }

  mutating func handOut(_ member: AsyncOperation) -> HandOut? {
    next === member && !isDraining ? handOutNext() : nil
  }

  /// - Returns: Nil if the runner must stop.
  mutating func handOutNext() -> HandOut? {
    guard mayHandOut else { return nil }
    var next: HandOut?
    if let handOut = granted.popFirst() {
      next = handOut
    } else if let member = cancelled.popFirst() {
      next = HandOut(member: member)
    } else if let (member, rank) = ready.popFirst() {
      ready.slotsInUse += 1
      next = HandOut(member: member, rank: rank)
    }
    // Beside a cancelled member, the last slot gets no runner: a serial group calls its observers before it goes on.
    if next?.hasSlot == true || limit < 0 || ready.slotsInUse + 1 < limit { next?.runner = requestRunner() }
    return next
  }

  // MARK: Processing results

  /// - Returns: Whether the caller must process the result. Otherwise the thread that processes results takes it as well.
  mutating func beginCollecting(_ member: AsyncOperation) -> Bool {
    let isFirst = waitingResults == nil
    if isFirst { waitingResults = [] } else { waitingResults?.append(member) }
    return isFirst
  }

  /// If no results have arrived since the last call, the processing has ended.
  mutating func takeWaitingResults() -> [AsyncOperation] {
    let results = waitingResults ?? []
    waitingResults = results.isEmpty ? nil : []
    return results
  }

  mutating func memberWasRemoved() { unfinishedMembers -= 1 }
}
