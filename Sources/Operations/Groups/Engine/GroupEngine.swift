import Foundation
import Synchronization

/// The engine that runs a group's members. It does not add them to one `OperationQueue`, because Foundation walks all
/// waiting operations of a queue whenever one finishes. Instead, the ledger of each member reports that it is ready,
/// and a few runners on a private queue take it. No thread waits for a member, so groups can be nested to any depth.
final class GroupEngine: @unchecked Sendable {
  struct State {
    var schedule = GroupSchedule()
    /// Nil if no member has waited for keys.
    var room: GroupRoom?
    var members = NumberedList<AsyncOperation>()
    /// The slots without operations, which count as members.
    var slots = NumberedList<GroupSlot>()
    /// The number of threads that make operations of slots. Meanwhile new slots have operations, so that they come to an end.
    var memberReaders = 0
    /// The plain Foundation members of a group that has not started, which do not report when they gain a dependency.
    var plainMembers: [PlainMember] = []
    var progress = GroupProgress()
    var roomWaiters = RoomWaiters()
    /// Whether a member has had an unfinished dependency.
    var membersMayWait = false
    var errorPolicy = GroupOperation.ErrorPolicy.collect
    /// Added to every new member, and to those of groups inside the group.
    var memberObservers: [OperationObserver] = []
    /// What `drained()` waits for: all members as one, each item of the group's queue, and work that outlasts a member.
    var undrainedWork = 1
    var drainWaiters = NumberedList<Waiter>()

    var memberCount: Int { members.count + slots.count }

    /// Whether any thread can start the group: this takes little time, finishes nothing, and calls no code of the user.
    var startsAnywhere: Bool { 1...16 ~= members.count && plainMembers.isEmpty }

    /// - Returns: The members, if there was no such request.
    mutating func takeMembers(toEnd request: GroupSchedule.EndRequest) -> [AsyncOperation] {
      schedule.request(request) ? members.elements : []
    }

    mutating func hasRoom(below count: Int, isAdding: Bool) -> Bool {
      roomWaiters.hasRoom(below: count, of: memberCount, isAdding: isAdding)
    }

    mutating func weigh(_ part: MemberPart) { if members.contains(part.index) { progress.weigh(part) } }
  }

  /// What the caller must do after releasing the lock.
  struct Action {
    var keyEffects: [KeyTable.Effect] = []
    var runner = GroupSchedule.RunnerRequest.none
    var outcome = GroupSchedule.Outcome.none
    var waiters: [Waiter] = []
    var updatesProgress = false
  }

  let state = Locked(State())
  let isReleasing = Atomic(false)
  /// The number of members that are closed, and have not returned their slots yet.
  let returningSlots = Atomic(0)
  /// A subclass may need all results. `GroupOperation` itself needs only errors.
  let collectsAll: Bool
  /// Written once, before another thread can access the engine.
  weak var owner: GroupOperation?

  init(collectsAll: Bool) { self.collectsAll = collectsAll }

  var members: [AsyncOperation] { readMembers() }

  var isFinishRequested: Bool { state.withLock { $0.schedule.endRequest >= .finish } }

  var isDraining: Bool { state.withLock { $0.schedule.isDraining } }

  /// Whether members of a group that has not started may have dependencies outside it, at any depth. False for most groups.
  var membersMayWait: Bool {
    var engines = [self]
    while let engine = engines.popLast() {
      let (hasPlainMembers, mayWait, inner) = engine.state.withLock { state in
        (!state.plainMembers.isEmpty, state.membersMayWait, state.progress.children)
      }
      if hasPlainMembers || (mayWait && !engine.isInOrder) { return true }
      engines += inner.compactMap(\.operation.engineOfMembers)
    }
    return false
  }

  /// Whether every member depends only on earlier members, as in most groups.
  private var isInOrder: Bool {
    state.withLock { $0.members.elements }.allSatisfy { member in
      let (index, dependencies) = member.core.withLock { ($0.memberIndex, $0.ledger.dependencies.entries) }
      return dependencies.allSatisfy { dependency in
        guard case .own(let operation) = dependency else { return false }
        return operation.core.withLock { $0.engine === self && $0.memberIndex < index }
      }
    }
  }

  func change(_ change: (inout GroupSchedule) -> Void) {
    let owner = owner
    let action = state.withLock { state in
      state.schedule.wake(owner)
      change(&state.schedule)
      return state.decideAction()
    }
    carryOut(action)
  }

  /// Removes the members of a deallocated group, which are free if it was not started. The caller releases them. Those of
  /// an orphaned group still report their ends to this engine, which their runners retain.
  func disband() -> [AnyObject] {
    let former = state.withLock { state -> State? in
      if case .ended = state.schedule.life { return nil }
      // Keeps all references until the lock has been released.
      let former = state
      state.members = NumberedList()
      state.plainMembers = []
      state.progress = GroupProgress()
      state.schedule.disband()
      return former
    }
    guard let former else { return [] }
    for listener in former.progress.listeners.elements { listener.finish() }
    for member in former.plainMembers { member.forget() }
    let members = former.members.elements
    if !former.schedule.life.isOver { for member in members { member.changeWait { $0.becomeFree() } } }
    return members
  }

  /// Adds observers to later members at any depth, without recursion, and to present ones if `toPresent` is true.
  func addObservers(_ observers: [OperationObserver], toPresent: Bool) {
    var rest = [self]
    while let engine = rest.popLast() {
      let members = engine.readMembers { $0.memberObservers += observers }
      if toPresent { for member in members { member.addObservers(observers) } }
      rest += members.compactMap(\.engineOfMembers)
    }
  }

  // MARK: Events of members

  /// Moves a ready member to its priority, unless that is the former one. A change before it had its place found none.
  func moveMember(_ member: AsyncOperation, _ keys: KeyRequest?, from former: Operation.QueuePriority? = nil) {
    let priority = member.queuePriority
    if priority == former { return }
    change { $0.move(member, keys, to: priority) }
  }

  func memberReportsProgress(_ member: AsyncOperation, index: Int) {
    if let part = MemberPart(member, index: index) { state.withLock { $0.weigh(part) } }
    updateProgress()
  }

  /// Returns whether the progress of the group around this one must be published as well.
  func publishProgress() -> Bool {
    // One call at a time, so that the newest value is the last.
    OperationProgress.exclusively {
      let (progress, listeners) = state.withLock { ($0.progress.shared, $0.progress.listeners.elements) }
      guard let progress else { return false }
      for listener in listeners { listener.yield(progress.fractionCompleted) }
      return progress.updateCopies()
    }
  }

  func memberGainedDependency(_ member: AsyncOperation) {
    if state.withLock({ $0.errorPolicy }) == .cancelDependents { cancelIfDependencyFailed(member) }
    watch(isWaiting: true)
  }

  /// Looks for cycles through the members of a group that has started, if one has a dependency.
  func watch(isWaiting: Bool = false) {
    let group = state.withLock { state in
      if isWaiting { state.membersMayWait = true }
      return state.membersMayWait ? state.schedule.life.group : nil
    }
    if let group { WaitWatch.watch(group) }
  }

  // MARK: Cancelling

  /// Cancels the members, or only those that have not started.
  func drain(by request: GroupSchedule.EndRequest) {
    let members = state.withLock { $0.takeMembers(toEnd: request) }
    AsyncOperation.cancelAll(members, in: self, where: { request == .cancel || $0 != .executing })
    membersWereCancelled()
  }

  func membersWereCancelled() { change { _ in } }

  /// Cancels the members that depend on a failed or cancelled one, and those that are added later.
  func cancelDependents(of member: AsyncOperation) {
    AsyncOperation.cancelAll(member.core.withLock { $0.fail() }, in: self, where: { !$0.isExecuting })
  }

  func cancelIfDependencyFailed(_ member: AsyncOperation) {
    let failed = member.core.withLock { $0.ledger.dependencies.entries }.contains { dependency in
      guard case .own(let operation) = dependency else { return false }
      return operation.core.withLock { $0.hasFailed(in: self) }
    }
    if failed { member.cancel(nil, in: self) { !$0.isExecuting } }
  }

  /// Calls `waiter` when all members have finished and no work of them continues. The returned closure prevents that.
  @discardableResult
  func waitForDrain(_ waiter: @escaping @Sendable () -> Void) -> (() -> Void)? {
    let number = state.withLock { $0.undrainedWork > 0 ? $0.drainWaiters.append(waiter) : nil }
    if number == nil { waiter() }
    return number.map { number in
      { [self] in withExtendedLifetime(state.withLock { $0.drainWaiters.remove(number) }) {} }
    }
  }

  /// Counts the work that may continue after the end of a member, which timed out or finished when it was cancelled.
  func workContinues(after end: OperationCore.End, of member: AsyncOperation) {
    if member is GroupOperation || end.task != nil { workContinues(in: member) }
    if let inner = end.extras?.inner { workContinues(in: inner) }
  }

  func workContinues(in operation: AsyncOperation) {
    workBegins()
    operation.whenDrained { [self] in workDidEnd() }
  }

  func workBegins() { state.withLock { $0.undrainedWork += 1 } }

  func workDidEnd() {
    let waiters = state.withLock { state in
      state.undrainedWork -= 1
      return state.undrainedWork > 0 ? [] : state.drainWaiters.removeAll()
    }
    for waiter in waiters { Trampoline.run(waiter) }
  }
}
