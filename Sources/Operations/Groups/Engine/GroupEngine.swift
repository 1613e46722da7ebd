import Foundation
import Synchronization

/// Runs the members of a group.
///
/// Members are not enqueued one by one: Foundation walks all the waiting operations of a queue at every finish. The
/// engine has a list of the ready ones, fed by their ledgers, and a few runners on a private queue that take from it.
/// No thread waits for anything here, so groups may be nested to any depth.
final class GroupEngine: OperationSupervisor, @unchecked Sendable {
  let state = Locked(State())
  /// A runner is releasing finished members at this moment.
  let isReleasing = Atomic(false)
  /// A subclass of the group may want to see every result; the group as it is only wants to see errors.
  let accountsForAll: Bool
  private let owner = Locked(WeakOwner())

  private struct WeakOwner {
    weak var group: GroupOperation?
  }

  init(accountsForAll: Bool) { self.accountsForAll = accountsForAll }

  /// The group that this is the engine of.
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

  /// Whether the group does not finish even if all of its members have.
  var isOpen: Bool { state.withLock { $0.schedule.isOpen } }

  var isWindingDown: Bool { state.withLock { $0.schedule.isWindingDown } }

  var isFinishing: Bool { state.withLock { $0.schedule.isFinishing } }

  var errorPolicy: GroupOperation.ErrorPolicy {
    get { state.withLock { $0.errorPolicy } }
    set { state.withLock { $0.errorPolicy = newValue } }
  }

  private func change(_ change: (inout GroupSchedule) -> Void) {
    let (addsRunner, isDone) = state.withLock { state in
      change(&state.schedule)
      return (state.schedule.addRunnerIfUseful(), state.schedule.endIfDone())
    }
    if addsRunner { addRunner() }
    if isDone { end() }
  }

  /// The group is released. If it has not been started, its members are free again; they are returned to be let go of.
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
    // It holds the ready ones, too: not to the last.
    _ = consume schedule
    for case let member as AsyncOperation in members { member.core.withLock { $0.becomeFree() } }
    return members
  }

  // MARK: OperationSupervisor

  override func memberIsReady(_ member: AsyncOperation) { becameReady(member) }

  override func memberReportsProgress(_ member: AsyncOperation, index: Int) {
    let part = MemberPart(member, index: index)
    state.withLock { $0.weigh(part) }
    updateProgress()
  }

  /// One at a time, so that the newest is the last.
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
      return state.schedule.phase == .running && !state.schedule.isWindingDown
    }
    // A new cycle goes through the new dependency. If nothing moves, this is the last chance to find it.
    if isRunning { searchForCycle(from: member) }
  }

  // MARK: Cancelling

  /// Cancels every member, and those that come later, and sees to it that they all finish.
  func cancelMembers() {
    for member in takeMembersToCancel() { member.cancel() }
    membersWereCancelled()
  }

  /// Members that come later are cancelled as they come.
  ///
  /// - Returns: Those to be cancelled now, once. The caller then calls ``membersWereCancelled()``.
  func takeMembersToCancel() -> [Operation] {
    state.withLock { state in
      state.schedule.isWindingDown = true
      defer { state.hasCancelledMembers = true }
      return state.hasCancelledMembers ? [] : state.members.operations
    }
  }

  /// Sees to it that they all finish.
  func membersWereCancelled() { change { _ in } }

  /// Cancels the members that have not started, and those that come later. The others run to their end.
  func stopStarting() {
    let members = state.withLock { state -> [Operation]? in
      if state.schedule.isWindingDown { return nil }
      state.schedule.isWindingDown = true
      return state.members.operations
    }
    for member in members ?? [] { cancelUnlessStarted(member) }
  }

  func cancelUnlessStarted(_ member: Operation) {
    if let own = member as? AsyncOperation {
      own.cancel(.none, unlessStarted: true)
    } else if !member.isExecuting {
      member.cancel()
    }
  }

  /// The group finishes, perhaps before its members have.
  func groupWillFinish() {
    let group = state.withLock { state in
      state.isAbandoned = state.schedule.phase == .running
      return state.releaseIfAbandoned()
    }
    withExtendedLifetime(group) { endProgress() }
  }

  /// The group has been told to finish, which it does when its members have.
  func finishWithMembers() { change { $0.isFinishing = true } }
}
