import Foundation
import Synchronization

/// Runs the members of a group.
///
/// Members are not enqueued one by one: Foundation walks all the waiting operations of a queue at every finish. The
/// engine has a list of the ready ones, fed by their ledgers, and a few runners on a private queue that take from it. No
/// thread waits for anything here, so groups may be nested to any depth.
final class GroupEngine: OperationSupervisor, @unchecked Sendable {
  /// How many members a runner starts before it lets other work have the thread.
  private static let quantum = 256
  /// How long a runner that is about to take the next member is trusted to do it.
  private static let patience = DispatchTimeInterval.milliseconds(20)

  let state = Locked(State())
  /// A runner is releasing finished members at this moment.
  let isReleasing = Atomic(false)
  /// A subclass of the group may want to see every result; the group as it is only wants to see errors.
  private let accountsForAll: Bool
  private let owner = Locked(WeakOwner())

  private struct WeakOwner {
    weak var group: GroupOperation?
  }

  init(accountsForAll: Bool) { self.accountsForAll = accountsForAll }

  /// The group that this is the engine of.
  override var supervisedGroup: AsyncOperation? { owner.withLock { $0.group } }

  func belong(to group: GroupOperation) { owner.withLock { $0.group = group } }

  var members: [Operation] { state.withLock { $0.members.operations } }

  var limit: Int {
    get { state.withLock { $0.schedule.limit } }
    set { change { $0.limit = newValue } }
  }

  var isSuspended: Bool {
    get { state.withLock { $0.schedule.isSuspended } }
    set { change { $0.isSuspended = newValue } }
  }

  var isWindingDown: Bool { state.withLock { $0.schedule.isWindingDown } }

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
    let (members, schedule, waiting, beginWaiters, listeners) = state.withLock { state in
      defer {
        (state.members, state.schedule) = (MemberList(), GroupSchedule())
        state.isDisbanded = true
        (state.waitingForeignMembers, state.beginWaiters) = ([:], [])
      }
      let listeners = state.progress.takeListeners()
      let waiting = state.waitingForeignMembers.values
      return (state.members.operations, state.schedule, waiting, state.beginWaiters, listeners)
    }
    for listener in listeners { listener.finish() }
    for wait in waiting { wait.relay.stop(waitingFor: wait.operations) }
    // It holds the ready ones, too: not to the last.
    _ = consume schedule
    for case let member as AsyncOperation in members { member.core.withLock { $0.becomeFree() } }
    for waiter in beginWaiters { waiter(false) }
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
  override func publishProgress() {
    ProgressLock.exclusively {
      guard let (progress, listeners) = state.withLock({ $0.progress.audience }) else { return }
      let fraction = progress.fractionCompleted
      for listener in listeners { listener.yield(fraction) }
    }
  }

  override func memberGainedDependency(_ member: AsyncOperation) {
    let (isRunning, isStuck) = state.withLock { state in
      if state.schedule.phase == .gathering { state.schedule.isCycleSuspected = true }
      return (state.schedule.phase == .running && !state.schedule.isWindingDown, state.schedule.isStuck)
    }
    // A new circle goes through the new dependency. If nothing moves, this is the last chance to find it.
    if isRunning { searchForCycle(from: member, isThorough: isStuck) }
  }

  func becameReady(_ member: Operation) {
    let takenNext = GroupRunner.isAboutToTake(from: self)
    let member = ReadyMember(member)
    carryOut(state.withLock { $0.schedule.becameReady(member, takenNext: takenNext) })
  }

  // MARK: Members run

  /// Begins to run the members, once; all of them are finished in the end, also if none is to be executed.
  func begin(_ group: GroupOperation, windingDown: Bool) {
    let queue = OperationQueue()
    queue.name = "Operations.GroupOperation " + group.displayName
    if group.qualityOfService != .default { queue.qualityOfService = group.qualityOfService }
    // Its own, or what the group around it gave to who started it: not looked for all the way out.
    let clock = group.core.withLock { $0.extras?.clock ?? $0.starter?.clock }
    let beginWaiters = state.withLock { state -> [@Sendable (Bool) -> Void]? in
      if state.schedule.phase != .gathering { return nil }
      state.group = group
      state.clock = clock
      state.queue = queue
      state.isDeadlineDue = !windingDown
      if windingDown { state.schedule.isWindingDown = true }
      state.schedule.begin()
      defer { state.beginWaiters = [] }
      return state.beginWaiters
    }
    guard let beginWaiters else { return }
    // Whoever has cancelled the group may not have come to its members yet.
    if windingDown { cancelMembers() }
    for waiter in beginWaiters { waiter(true) }
    searchForSuspectedCycle(evenIfMoving: true)
    // If there is nobody to be started the time begins all the same.
    state.withLock { $0.schedule.mayHandOut ? nil : $0.takeDueDeadline() }?.startDeadline()
    admitted()
  }

  /// Calls `waiter` when the group begins, at once if it has; or when it is released before, with false.
  func whenBegun(_ waiter: @escaping @Sendable (_ hasBegun: Bool) -> Void) {
    let hasBegun = state.withLock { state in
      if state.schedule.phase == .gathering { state.beginWaiters.append(waiter) }
      return state.schedule.phase != .gathering
    }
    if hasBegun { waiter(true) }
  }

  func addRunner() {
    state.withLock { $0.queue }?.addOperation { [self] in work() }
  }

  private func carryOut(_ help: GroupSchedule.Help) {
    switch help {
    case .none: return
    case .addRunner: addRunner()
    case .watch:
      // The member may have finished in the middle of its `execute()`, and go on for long, or wait for one that this
      // runner was to take.
      DispatchQueue.global().asyncAfter(deadline: .now() + GroupEngine.patience) { [weak self] in
        guard let self else { return }
        if state.withLock({ $0.schedule.endWatch() }) { addRunner() }
      }
    }
  }

  private func work() {
    let runner = makeRunner()
    let addsRunner = runner.run {
      state.withLock { $0.schedule.runnerBegan() }
      for _ in 0..<GroupEngine.quantum {
        let (take, due) = state.withLock { ($0.schedule.take(), $0.takeDueDeadline()) }
        due?.startDeadline()
        guard case .run(let member, let addsRunner, let cancelled) = take else { return false }
        if addsRunner { addRunner() }
        if cancelled { member.cancel() }
        let quality = member.qualityOfService
        if quality == .default { runner.run(member) { start(member, by: runner) } } else { start(member, at: quality) }
      }
      return state.withLock { $0.schedule.addRunnerIfUseful() }
    }
    if addsRunner { addRunner() }
    searchForSuspectedCycle()
  }

  private func makeRunner() -> GroupRunner { GroupRunner(for: self, clock: state.withLock { $0.clock }) }

  /// A member with a quality of service of its own gets a work item of its own, so that the system sees it.
  private func start(_ member: Operation, at quality: QualityOfService) {
    let block = BlockOperation { [self] in start(member, by: makeRunner()) }
    block.qualityOfService = quality
    state.withLock { $0.queue }?.addOperation(block)
  }

  private func start(_ member: Operation, by runner: GroupRunner) {
    guard let own = member as? AsyncOperation else { return startForeign(member) }
    switch own.startAsMember(by: runner) {
    case .begun, .awaitGate: return
    case .isGone: slotIsFree()
    case .notReady:
      slotIsFree()
      searchForSuspectedCycle()
    }
  }

  /// A member gives its slot back without having finished just now.
  func slotIsFree() {
    let (help, step) = state.withLock { state -> (GroupSchedule.Help, Step) in
      if state.isDisbanded { return (.none, Step()) }
      return (state.schedule.freeSlot(takenNext: false), state.nextStep())
    }
    carryOut(help)
    carryOut(step)
  }

  private func startForeign(_ member: Operation) {
    let trace = trace(of: member)
    // Asked once: it may become ready at any moment.
    let isStarted = member.isFinished || member.isReady
    if isStarted, !member.isFinished {
      // Foundation starts one that is cancelled only to finish it.
      if !member.isCancelled { trace?.operationBegins() }
      member.start()
    }
    if member.isFinished { return foreignMemberDidFinish(member, trace) }
    if isStarted { trace?.executionReturned() }
    // It finishes later, or is not ready in Foundation's books yet, though all it waited for has finished: those are
    // settled by another thread at this moment. Foundation starts it when they are.
    FinishRelay { self.foreignMemberDidFinish(member, trace) }.wait(for: [member])
    guard !isStarted, let queue = state.withLock({ $0.queue }) else { return }
    if !member.isCancelled {
      trace?.operationBegins()
      trace?.executionReturned()
    }
    queue.addOperation(member)
    queue.nudge()
  }

  // MARK: Members end

  /// Of a plain Foundation operation, which cannot keep them itself.
  private func trace(of member: Operation) -> OperationTrace? {
    state.withLock { $0.group }?.trace?.trace(of: member)
  }

  /// - Parameter trace: Who has seen it begin. Somebody may have come since.
  private func foreignMemberDidFinish(_ member: Operation, _ trace: OperationTrace?) {
    (trace ?? self.trace(of: member))?.operationEnds(member)
    let (index, wait) = state.withLock { state in
      let id = ObjectIdentifier(member)
      return (state.foreignMembers.removeValue(forKey: id), state.waitingForeignMembers.removeValue(forKey: id))
    }
    guard let index else { return }
    wait?.relay.stop(waitingFor: wait?.operations ?? [])
    member.forgetDependencies()
    let takenNext = GroupRunner.isAboutToTake(from: self)
    finished(FinishedMember(operation: member, index: index), failed: false, takenNext: takenNext)
  }

  func finished(_ member: FinishedMember, failed: Bool, takenNext: Bool) {
    let (help, group, step) = state.withLock { state -> (GroupSchedule.Help, GroupOperation?, Step) in
      if state.isDisbanded { return (.none, nil, Step()) }
      let accounts = (accountsForAll || failed) && state.group != nil
      let help = member.holdsSlot ? state.schedule.freeSlot(takenNext: takenNext) : .none
      if accounts { return (help, state.schedule.beginAccounting(for: member) ? state.group : nil, Step()) }
      return (help, nil, state.settle(member))
    }
    carryOut(help)
    if let group { account(for: member, in: group) } else { carryOut(step) }
  }

  /// Lets the group look at results, one at a time, until there are none left.
  private func account(for first: FinishedMember, in group: GroupOperation) {
    var batch = [first]
    while !batch.isEmpty {
      for member in batch {
        group.account(for: member.operation)
        carryOut(state.withLock { $0.settle(member) })
      }
      batch = state.withLock { $0.schedule.nextToAccount() }
    }
    carryOut(state.withLock { $0.nextStep() })
  }

  private func carryOut(_ step: Step) {
    if step.updatesProgress { updateProgress() }
    if step.isDone { end() } else if step.isStuck { searchForSuspectedCycle() }
  }

  func end() {
    let group = state.withLock { state in
      defer { (state.group, state.queue) = (nil, nil) }
      return state.group
    }
    endProgress()
    Trampoline.run { group?.endIfNotEnded() }
  }

  // MARK: Cancelling

  /// Cancels every member, and those that come later, and sees to it that they all finish.
  func cancelMembers() {
    let members = state.withLock { state -> [Operation]? in
      state.schedule.isWindingDown = true
      defer { state.hasCancelledMembers = true }
      return state.hasCancelledMembers ? nil : state.members.operations
    }
    guard let members else { return }
    // Nested groups pass it on, each on top of the one around it.
    Trampoline.run { [self] in
      for member in members { cancel(member) }
      change { _ in }
    }
  }

  func cancel(_ member: Operation) {
    member.cancel()
    if !(member is AsyncOperation) { foreignMemberIsReady(member) }
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
