import Foundation
import Synchronization

/// The engine that runs the members of a group.
///
/// The engine does not add its members to one `OperationQueue`, because Foundation walks all waiting operations of a
/// queue whenever one finishes. Instead, the ledger of each member reports when the member is ready. The engine keeps a
/// list of the ready members, and a few runners on a private queue take members from the list. No thread waits for a
/// member, so groups can be nested to any depth.
final class GroupEngine: OperationSupervisor, @unchecked Sendable {
  let state = Locked(State())
  /// Whether a runner is releasing finished members.
  let isReleasing = Atomic(false)
  /// Whether every result is passed to the group. A subclass may need all results; `GroupOperation` itself needs only
  /// errors.
  let accountsForAll: Bool
  private let owner = Locked(WeakOwner())

  private struct WeakOwner {
    weak var group: GroupOperation?
  }

  init(accountsForAll: Bool) { self.accountsForAll = accountsForAll }

  /// The group that the engine belongs to.
  override var supervisedGroup: AsyncOperation? { owner.withLock { $0.group } }

  func belong(to group: GroupOperation) { owner.withLock { $0.group = group } }

  var members: [Operation] { state.withLock { $0.members.operations } }

  var memberCount: Int { state.withLock { $0.members.count } }

  var hasHadGroups: Bool { state.withLock { $0.hasHadGroups } }

  var limit: Int {
    get { state.withLock { $0.schedule.limit } }
    set { change { $0.limit = newValue } }
  }

  var isSuspended: Bool {
    get { state.withLock { $0.schedule.isSuspended } }
    set { change { $0.isSuspended = newValue } }
  }

  var staysOpen: Bool {
    get { state.withLock { $0.schedule.staysOpen } }
    set { change { $0.staysOpen = newValue } }
  }

  /// Whether the group stays unfinished when all of its members have finished.
  var isOpen: Bool { state.withLock { $0.schedule.isOpen } }

  var isDraining: Bool { state.withLock { $0.schedule.isDraining } }

  var isFinishing: Bool { state.withLock { $0.schedule.isFinishing } }

  var errorPolicy: GroupOperation.ErrorPolicy {
    get { state.withLock { $0.errorPolicy } }
    set { state.withLock { $0.errorPolicy = newValue } }
  }

  /// Changes the schedule, and then adds a runner or finishes the group if the schedule requires it.
  private func change(_ change: (inout GroupSchedule) -> Void) {
    let (addsRunner, isDone) = state.withLock { state in
      change(&state.schedule)
      return (state.schedule.addRunnerIfUseful(), state.schedule.endIfDone())
    }
    if addsRunner { addRunner() }
    if isDone { end() }
  }

  /// Removes all members because the group is being deallocated. If the group has not been started, its members can be
  /// added elsewhere.
  ///
  /// - Returns: The members, which the caller releases.
  func disband() -> [AnyObject] {
    let (members, schedule, plainMembers, listeners) = state.withLock { state in
      defer {
        (state.members, state.schedule) = (MemberList(), GroupSchedule())
        state.isDisbanded = true
        state.plainMembers = [:]
      }
      let listeners = state.progress.endUpdates()
      return (state.members.operations, state.schedule, state.plainMembers.values, listeners)
    }
    for listener in listeners { listener.finish() }
    for case let hold? in plainMembers.lazy.map(\.hold) { hold.relay.stop(waitingFor: hold.dependencies) }
    // The schedule also retains the ready members. The caller must release the last references.
    _ = consume schedule
    for case let member as AsyncOperation in members {
      member.core.withLock { $0.becomeFree() }
      member.changeCount { $0.forgetPermit() }
    }
    return members
  }

  // MARK: OperationSupervisor

  override func memberIsReady(_ member: AsyncOperation) { becameReady(member) }

  override func memberReportsProgress(_ member: AsyncOperation, index: Int) {
    let part = MemberPart(member, index: index)
    state.withLock { $0.weigh(part) }
    updateProgress()
  }

  /// Publishes the progress, one call at a time, so that the newest value is the last.
  override func publishProgress() -> Bool {
    ProgressLock.exclusively {
      let (progress, listeners) = state.withLock { ($0.progress.shared, $0.progress.audience) }
      guard let progress else { return false }
      if !listeners.isEmpty {
        let fraction = progress.fractionCompleted
        for listener in listeners { listener.yield(fraction) }
      }
      return progress.updateCopies()
    }
  }

  override func memberGainedDependency(_ member: AsyncOperation) {
    let isRunning = state.withLock { state in
      if state.schedule.phase == .gathering { state.schedule.isCycleSuspected = true }
      return state.schedule.phase == .running && !state.schedule.isDraining
    }
    // A new cycle leads through the new dependency. If no member runs, no later event starts a search.
    if isRunning { searchForCycle(from: member) }
  }

  // MARK: Cancelling

  /// Cancels every member, including members that are added later, and ensures that all of them finish.
  func cancelMembers() {
    for member in takeMembersToCancel() { member.cancelAsMember() }
    membersWereCancelled()
  }

  /// Takes the members to cancel. Members that are added later are cancelled when they are added.
  ///
  /// - Returns: The members to cancel, on the first call only. The caller then calls ``membersWereCancelled()``.
  func takeMembersToCancel() -> [Operation] {
    state.withLock { state in
      state.schedule.isDraining = true
      defer { state.hasCancelledMembers = true }
      return state.hasCancelledMembers ? [] : state.members.operations
    }
  }

  /// Ensures that all cancelled members finish.
  func membersWereCancelled() { change { _ in } }

  /// Cancels the members that have not started, and members that are added later. Members that have started run to
  /// their end.
  func stopStarting() {
    let members = state.withLock { state -> [Operation]? in
      if state.schedule.isDraining { return nil }
      state.schedule.isDraining = true
      return state.members.operations
    }
    for member in members ?? [] { cancelUnlessStarted(member) }
  }

  func cancelUnlessStarted(_ member: Operation) {
    if let own = member as? AsyncOperation {
      own.cancel(.none, unlessStarted: true)
    } else if !member.isExecuting {
      member.cancelAsMember()
    }
  }

  /// Records that the group is about to finish, possibly before its members have finished.
  func groupWillFinish() {
    let group = state.withLock { state in
      state.isAbandoned = state.schedule.phase == .running
      return state.releaseIfAbandoned()
    }
    withExtendedLifetime(group) { endProgress() }
  }

  /// Makes the group finish when its members have finished.
  func finishWithMembers() { change { $0.isFinishing = true } }
}

/// The state that the engine keeps under its lock.
extension GroupEngine {
  struct State {
    var schedule = GroupSchedule()
    var members = MemberList()
    var progress = GroupProgress()
    var roomWaiters = RoomWaiters()
    var errorPolicy = GroupOperation.ErrorPolicy.collect
    /// Plain Foundation members, which cannot store their index themselves.
    var plainMembers: [ObjectIdentifier: PlainMember] = [:]
    /// The errors with which plain members were cancelled.
    var plainErrors: [ObjectIdentifier: any Error] = [:]
    /// Whether a group has been a member, so that this group may enclose others.
    var hasHadGroups = false
    /// Whether a member has needed a permit.
    var hasHadPermits = false
    /// Whether the members have been cancelled, or are being cancelled.
    var hasCancelledMembers = false
    /// Whether a delayed search for cycles is pending.
    var isSearchDue = false
    /// The group while it runs, because a running group stays alive.
    var group: GroupOperation?
    /// The queue of the runners.
    var queue: OperationQueue?
    /// The group's clock at its start. Nil for the system's clock.
    var clock: (any Clock<Duration>)?
    /// Whether the time of the group has not begun, because no member has been started.
    var isDeadlineDue = false
    /// Whether the group timed out and finished before its members.
    var isAbandoned = false
    /// Whether the group has been deallocated.
    var isDisbanded = false

    /// Removes a finished member after its result has been processed.
    mutating func settle(_ member: FinishedMember) -> Step {
      // The caller has another reference, so nothing is released under the lock.
      _ = members.remove(at: member.index)
      schedule.accounted()
      var step = nextStep()
      step.roomWaiters = roomWaiters.take(downTo: members.count)
      progress.complete(member.operation)
      step.updatesProgress = progress.isFollowed
      return step
    }

    func hasRoom(below count: Int) -> Bool { members.count < count || roomWaiters.isOver }

    /// Returns the group if its time has not begun. Later calls return nil.
    mutating func takeDueDeadline() -> GroupOperation? {
      defer { isDeadlineDue = false }
      return isDeadlineDue ? group : nil
    }

    mutating func weigh(_ part: MemberPart) {
      if members.contains(part.index) { progress.weigh(part) }
    }

    mutating func nextStep() -> Step {
      let isDone = schedule.endIfDone()
      return Step(
        isDone: isDone,
        searchesForCycle: schedule.isCycleSuspected && schedule.hasNothingToRun,
        released: isDone ? nil : releaseIfAbandoned()
      )
    }

    /// Returns the group for release if it has finished and only executing members remain. These may never finish.
    mutating func releaseIfAbandoned() -> GroupOperation? {
      guard isAbandoned, schedule.hasOnlyExecutingMembers else { return nil }
      defer { group = nil }
      return group
    }
  }

  /// The actions to take after a member has finished.
  struct Step {
    var updatesProgress = false
    var isDone = false
    var searchesForCycle = false
    /// The waiting tasks that can resume.
    var roomWaiters = RoomWaiters.Batch()
    /// The group, if the caller must release it.
    var released: GroupOperation?
  }
}
