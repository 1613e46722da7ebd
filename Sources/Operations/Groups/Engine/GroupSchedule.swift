import Foundation

/// Decides which member of a group runs next, and when the group finishes. A member uses a *slot* from the time it is
/// handed out until it finishes or releases the slot. A *runner* is a work item that takes members one by one.
struct GroupSchedule {
  enum Life {
    /// Members with keys wait their turn from the start of the group.
    case gathering(needTurns: Bool)
    /// No runner has taken a member yet, so the time of the group has not begun.
    case starting(GroupOperation, GroupQueue)
    case running(GroupOperation, GroupQueue)
    /// Open and without members. The group is not retained, so that it ends with its last owner.
    case idle(GroupQueue)
    /// The group timed out, and has finished before its members.
    case abandoned(GroupOperation, GroupQueue)
    /// The engine has released the abandoned group, because only executing members remain. These may never finish.
    case orphaned(GroupQueue)
    case ended
    case disbanded

    /// The group, from its start until it is released. A running group stays alive.
    var group: GroupOperation? {
      switch self {
      case .starting(let group, _), .running(let group, _), .abandoned(let group, _): group
      case .gathering, .idle, .orphaned, .ended, .disbanded: nil
      }
    }

    var queue: GroupQueue? {
      switch self {
      case .starting(_, let queue), .running(_, let queue), .abandoned(_, let queue): queue
      case .idle(let queue), .orphaned(let queue): queue
      case .gathering, .ended, .disbanded: nil
      }
    }

    var isGathering: Bool { if case .gathering = self { true } else { false } }

    var isRunning: Bool {
      switch self {
      case .starting, .running, .idle, .abandoned, .orphaned: true
      case .gathering, .ended, .disbanded: false
      }
    }

    /// Whether the group takes no more members. An orphaned group cannot finish a new member.
    var isOver: Bool {
      switch self {
      case .orphaned, .ended, .disbanded: true
      case .gathering, .starting, .running, .idle, .abandoned: false
      }
    }
  }

  /// How long the group stays unfinished without members.
  enum Openness {
    case none
    /// The group started suspended and without members. It finishes when it is resumed.
    case untilFirstMember
    case untilClosed
  }

  /// The strongest request to end the group. Each includes the ones before it.
  enum EndRequest: Comparable {
    case none
    case finish
    /// Members are only started to finish, so neither the limit nor a suspension applies.
    case drain
    /// As ``drain``, and the members that execute are cancelled.
    case cancel
  }

  /// A member that a runner starts.
  struct HandOut {
    let member: AsyncOperation
    /// The rank of a ready member. The runner must put it back if it has a lower priority now.
    var rank: ReadyList.Rank?
    var slot = MemberSlot.own
    var runner = RunnerRequest.none
    var notice: (@Sendable () -> Void)?
  }

  enum RunnerRequest {
    case none
    /// Members that have been called must take their keys. The caller then requests a runner again.
    case grant
    case addRunner
    /// A runner will take the members when `execute()` returns. The caller must check later whether it has.
    case watch
  }

  enum Outcome {
    case proceed
    /// The caller must finish the group of this life.
    case end(Life)
    case searchForCycle
    /// Searches through new members, which close a cycle only if operations wait for them.
    case searchForCycleThrough([AsyncOperation])
    /// The caller must release the group. It is open and has no members, or it has finished before executing members.
    case release(GroupOperation)
  }

  private(set) var life = Life.gathering(needTurns: false)
  private(set) var openness = Openness.none
  private(set) var endRequest = EndRequest.none
  var cycleSearch = CycleSearch.none
  /// The number of members whose results have not been processed.
  private(set) var unfinishedMembers = 0
  /// The number of calls that are adding members or starting the group, which does not end meanwhile.
  private(set) var additions = 0
  private(set) var slotsTaken = 0
  var ready = ReadyList()
  /// The members that have a slot, and wait for a runner to start them.
  private var granted = ArrayDeque<HandOut>()
  /// The cancelled members that wait to be started. They finish at once, so neither the limit nor a suspension applies.
  var cancelled = ArrayDeque<AsyncOperation>()
  /// The results that have arrived while one thread processes earlier ones, one at a time. Nil if no thread does.
  private(set) var waitingResults: [FinishedMember]?
  /// The number of failures that are processed, and of members that are added, before any member starts.
  private(set) var startObstacles = 0
  private(set) var isRunnerRequested = false
  /// Whether a check after ``RunnerRequest/watch`` is pending. A runner can be requested meanwhile.
  private(set) var isRunnerWatched = false

  var limit = OperationQueue.defaultMaxConcurrentOperationCount
  var isSuspended = false { didSet { if !isSuspended { stopAwaitingMember() } } }
  /// Called when there is no slot for a member that waits for its keys any more.
  private var whenFull: (@Sendable () -> Void)?

  var staysOpen: Bool {
    get { openness == .untilClosed }
    set { if newValue { openness = .untilClosed } else if staysOpen { openness = .none } }
  }

  var isDraining: Bool { endRequest >= .drain }

  var isOpen: Bool { openness != .none && endRequest == .none }

  /// Whether members remain, but none runs or can run. They wait for operations outside the group, or for each other.
  var hasNothingToRun: Bool {
    guard life.isRunning, unfinishedMembers > 0, additions == 0 else { return false }
    return slotsTaken == 0 && hasNoneReady && waitingResults == nil
  }

  /// Whether an event of a member comes too late. The group must not retain the member, which may retain the group.
  private var hasEnded: Bool { !life.isGathering && !life.isRunning }

  private var hasNoMembers: Bool { unfinishedMembers == 0 && additions == 0 }

  private var hasNoneReady: Bool { ready.isEmpty && granted.isEmpty && cancelled.isEmpty }

  /// Whether a member that waits for its keys could start if they were free.
  var hasRoom: Bool { life.isRunning && startObstacles == 0 && !isSuspended && (limit < 0 || slotsTaken < limit) }

  mutating func notifyWhenFull(_ body: @escaping @Sendable () -> Void) { if whenFull == nil { whenFull = body } }

  /// - Returns: What the caller must call, if there is no slot any more.
  mutating func takeNotice() -> (@Sendable () -> Void)? { whenFull != nil && !hasRoom ? whenFull.take() : nil }

  var mayHandOut: Bool {
    if hasNoneReady || startObstacles > 0 { return false }
    return !granted.isEmpty || !cancelled.isEmpty || isDraining || (hasRoom && ready.firstRank?.isCalled == false)
  }

  private mutating func stopAwaitingMember() { if openness == .untilFirstMember { openness = .none } }

  // MARK: The life of the group

  /// Begins to start the group, until ``endAddition(skipped:)``. Returns whether members have keys, so that none starts
  /// before ``resumeStarts()``. Nil if the group has been started before.
  mutating func begin(_ group: GroupOperation, in queue: GroupQueue, draining: Bool) -> Bool? {
    guard case .gathering(let needTurns) = life else { return nil }
    life = draining ? .running(group, queue) : .starting(group, queue)
    if draining { request(.drain) }
    if needTurns { postponeStarts() }
    if isSuspended, hasNoMembers, openness == .none { openness = .untilFirstMember }
    additions += 1
    return needTurns
  }

  /// - Returns: The group whose time begins, on the first call only.
  mutating func beginTime() -> GroupOperation? {
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
    case .gathering, .abandoned, .orphaned, .ended, .disbanded: return nil
    }
    return orphanIfOnlyExecuting()
  }

  private mutating func orphanIfOnlyExecuting() -> GroupOperation? {
    guard case .abandoned(let group, let queue) = life else { return nil }
    guard hasNoneReady, unfinishedMembers == slotsTaken, additions == 0, waitingResults == nil else { return nil }
    life = .orphaned(queue)
    return group
  }

  mutating func disband() {
    self = GroupSchedule()
    life = .disbanded
  }

  mutating func nextOutcome() -> Outcome {
    let outcome = endIfDone()
    if case .proceed = outcome, beginCycleSearch() { return .searchForCycle }
    return outcome
  }

  /// Ends the life of a group without members that is not open, or the engine's hold on an open or an abandoned one.
  mutating func endIfDone() -> Outcome {
    guard life.isRunning, hasNoMembers, waitingResults == nil else {
      return orphanIfOnlyExecuting().map { .release($0) } ?? .proceed
    }
    if isOpen {
      guard case .running(let group, let queue) = life, slotsTaken == 0 else { return .proceed }
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

  /// - Returns: Whether the member waits its turn now. Otherwise it does so when the group starts.
  mutating func needTurn() -> Bool {
    guard life.isGathering else { return true }
    life = .gathering(needTurns: true)
    return false
  }

  /// `number` is that of a member that has arrived before. `takenNext` means that the runner whose member made this one
  /// ready is about to take the next member.
  mutating func becameReady(
    _ member: AsyncOperation,
    _ priority: Operation.QueuePriority,
    number: Int? = nil,
    isCalled: Bool = false,
    takenNext: Bool
  ) -> RunnerRequest {
    if !hasEnded { ready.append(member, priority, number: number, isCalled: isCalled) }
    return requestRunner(takenNext: takenNext)
  }

  /// Takes a slot for a member whose keys are free, unless a ready member comes first. The member itself may be in the ready
  /// list, since it was called.
  mutating func takeSlot(at rank: ReadyList.Rank) -> Bool {
    if !hasRoom { return false }
    if let first = ready.firstRank {
      if first < rank { return false }
      if first == rank { _ = ready.popFirst() }
    }
    slotsTaken += 1
    return true
  }

  /// Adds a member that has taken its slot and its keys.
  mutating func wasGranted(_ member: AsyncOperation, takenNext: Bool) -> RunnerRequest {
    if !hasEnded { granted.append(HandOut(member: member, slot: .withKeys)) }
    return requestRunner(takenNext: takenNext)
  }

  /// Adds a cancelled member. While the group drains, a ready one needs no other entry.
  mutating func wasCancelled(_ member: AsyncOperation, wasNotReady: Bool) {
    if hasEnded || (isDraining && !wasNotReady) { return }
    if !wasNotReady { ready.remove(ObjectIdentifier(member)) }
    cancelled.append(member)
  }

  /// Removes the entries of members that have finished, which the group must not retain after its end. The caller
  /// releases them.
  mutating func takeStaleEntries() -> (ReadyList, ArrayDeque<HandOut>, ArrayDeque<AsyncOperation>) {
    defer { (ready, granted, cancelled) = (ReadyList(), ArrayDeque(), ArrayDeque()) }
    return (ready, granted, cancelled)
  }

  // MARK: Running members

  mutating func requestRunner(takenNext: Bool = false) -> RunnerRequest {
    if ready.calledCount > 0, hasRoom, !isDraining { return .grant }
    guard life.isRunning, !isRunnerRequested, mayHandOut else { return .none }
    if takenNext {
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

  mutating func runnerBegan() { isRunnerRequested = false }

  /// - Returns: Nil if the runner must stop.
  mutating func take() -> HandOut? {
    guard mayHandOut else { return nil }
    var next: HandOut?
    if let handOut = granted.popFirst() {
      next = handOut
    } else if let member = cancelled.popFirst() {
      next = HandOut(member: member, slot: .none)
    } else if let (member, rank) = ready.popFirst() {
      next = HandOut(member: member, rank: rank)
      slotsTaken += 1
    }
    next?.runner = requestRunner()
    next?.notice = takeNotice()
    return next
  }

  /// Gives the free slots to the ready members, up to one that still has to take its keys, which is returned.
  mutating func takeCalled() -> (member: AsyncOperation, rank: ReadyList.Rank)? {
    while ready.calledCount > 0, hasRoom, !isDraining, let (member, rank) = ready.popFirst() {
      if rank.isCalled { return (member, rank) }
      slotsTaken += 1
      granted.append(HandOut(member: member, rank: rank))
    }
    return nil
  }

  /// Puts back a member that has been called again, because another one took the slot.
  mutating func calledAgain(_ member: AsyncOperation, _ rank: ReadyList.Rank) {
    if !hasEnded { ready.insert(member, rank) }
  }

  mutating func putBack(_ member: AsyncOperation, _ rank: ReadyList.Rank) {
    slotsTaken -= 1
    if !hasEnded { ready.insert(member, rank) }
  }

  mutating func postponeStarts() { startObstacles += 1 }

  mutating func resumeStarts() -> RunnerRequest {
    startObstacles -= 1
    return requestRunner()
  }

  /// The caller requests a runner when it has offered the slot to the members that wait for keys.
  mutating func returnSlot() { if life.isRunning { slotsTaken -= 1 } }

  mutating func releaseSlot(takenNext: Bool) -> RunnerRequest {
    slotsTaken -= 1
    return requestRunner(takenNext: takenNext)
  }

  // MARK: Processing results

  /// - Returns: Whether the caller must process the result. Otherwise the thread that processes results takes it as well.
  mutating func beginProcessing(_ member: FinishedMember) -> Bool {
    let isFirst = waitingResults == nil
    if isFirst { waitingResults = [] } else { waitingResults?.append(member) }
    return isFirst
  }

  /// If no results have arrived since the last call, the processing has ended.
  mutating func takeWaitingResults() -> [FinishedMember] {
    let results = waitingResults ?? []
    waitingResults = results.isEmpty ? nil : []
    return results
  }

  mutating func resultWasProcessed() { unfinishedMembers -= 1 }
}
