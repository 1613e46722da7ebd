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

  struct State {
    var schedule = GroupSchedule()
    var members = MemberList()
    var progress = GroupProgress()
    /// Plain Foundation members, which cannot note their index themselves.
    var foreignMembers: [ObjectIdentifier: Int] = [:]
    /// Those of them that wait for something, and will be told that they can run.
    var waitingForeignMembers: Set<ObjectIdentifier> = []
    /// From the beginning to the end: a running group stays alive.
    var group: GroupOperation?
    var queue: OperationQueue?

    /// Nothing is left to do for a member.
    mutating func settle(_ member: FinishedMember) -> Step {
      // Not its last reference: the caller has one, and nothing is released under the lock.
      _ = members.remove(at: member.index)
      schedule.accounted()
      var step = nextStep()
      step.progress = progress.complete(member.operation)
      return step
    }

    mutating func nextStep() -> Step {
      Step(isDone: schedule.endIfDone(), isStuck: schedule.isCycleSuspected && schedule.isStuck)
    }
  }

  /// What is to be done about a member having ended.
  struct Step {
    var progress: ProgressChange?
    var isDone = false
    var isStuck = false
  }

  let state = Locked(State())
  /// A runner is releasing finished members at this moment.
  let isReleasing = Atomic(false)
  /// A subclass of the group may want to see every result; the group as it is only wants to see errors.
  private let accountsForAll: Bool

  init(accountsForAll: Bool) { self.accountsForAll = accountsForAll }

  var members: [Operation] { state.withLock { $0.members.operations } }

  var limit: Int {
    get { state.withLock { $0.schedule.limit } }
    set { change { $0.limit = newValue } }
  }

  var isSuspended: Bool {
    get { state.withLock { $0.schedule.isSuspended } }
    set { change { $0.isSuspended = newValue } }
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
    let (members, schedule) = state.withLock { state in
      defer { (state.members, state.schedule) = (MemberList(), GroupSchedule()) }
      return (state.members.operations, state.schedule)
    }
    // It holds the ready ones, too: not to the last.
    _ = consume schedule
    for case let member as AsyncOperation in members { member.core.withLock { $0.becomeFree() } }
    return members
  }

  // MARK: OperationSupervisor

  override func memberIsReady(_ member: AsyncOperation) { becameReady(member) }

  override func memberGainedDependency(_ member: AsyncOperation) {
    state.withLock { $0.schedule.isCycleSuspected = true }
    searchForSuspectedCycle()
  }

  func becameReady(_ member: Operation) {
    let takenNext = GroupRunner.isAboutToTake(from: self)
    if state.withLock({ $0.schedule.becameReady(member, takenNext: takenNext) }) { addRunner() }
  }

  // MARK: Members run

  /// Begins to run the members; all of them are finished in the end, also if none is to be executed.
  func begin(_ group: GroupOperation, windingDown: Bool) {
    let queue = OperationQueue()
    queue.name = "Operations.GroupOperation " + group.displayName
    if group.qualityOfService != .default { queue.qualityOfService = group.qualityOfService }
    state.withLock { state in
      state.group = group
      state.queue = queue
      if windingDown { state.schedule.isWindingDown = true }
      state.schedule.begin()
    }
    searchForSuspectedCycle(evenIfMoving: true)
    admitted()
  }

  func addRunner() {
    state.withLock { $0.queue }?.addOperation { [self] in work() }
  }

  private func work() {
    let runner = GroupRunner(for: self)
    let addsRunner = runner.run {
      state.withLock { $0.schedule.runnerBegan() }
      for _ in 0..<GroupEngine.quantum {
        guard case .run(let member, let addsRunner) = state.withLock({ $0.schedule.take() }) else { return false }
        if addsRunner { addRunner() }
        let quality = member.qualityOfService
        if quality == .default { runner.run(member) { start(member, by: runner) } } else { start(member, at: quality) }
      }
      return state.withLock { $0.schedule.addRunnerIfUseful() }
    }
    if addsRunner { addRunner() }
    searchForSuspectedCycle()
  }

  /// A member with a quality of service of its own gets a work item of its own, so that the system sees it.
  private func start(_ member: Operation, at quality: QualityOfService) {
    let block = BlockOperation { [self] in start(member, by: GroupRunner(for: self)) }
    block.qualityOfService = quality
    state.withLock { $0.queue }?.addOperation(block)
  }

  private func start(_ member: Operation, by runner: GroupRunner) {
    guard let own = member as? AsyncOperation else { return startForeign(member) }
    switch own.startAsMember(by: runner) {
    case .begun, .awaitGate: return
    case .notReady: if state.withLock({ $0.schedule.freeSlot(takenNext: false) }) { addRunner() }
    }
  }

  private func startForeign(_ member: Operation) {
    if !member.isFinished, member.isReady { member.start() }
    if member.isFinished { return foreignMemberDidFinish(member) }
    // It finishes later, or is not ready in Foundation's books yet, though all it waited for has finished: those are
    // settled by another thread at this moment. Foundation starts it when they are.
    let isLeftToFoundation = !member.isExecuting && !member.isReady
    FinishRelay { self.foreignMemberDidFinish(member) }.wait(for: [member])
    guard isLeftToFoundation, let queue = state.withLock({ $0.queue }) else { return }
    queue.addOperation(member)
    queue.nudge()
  }

  // MARK: Members end

  private func foreignMemberDidFinish(_ member: Operation) {
    guard let index = state.withLock({ $0.foreignMembers.removeValue(forKey: ObjectIdentifier(member)) }) else {
      return
    }
    let takenNext = GroupRunner.isAboutToTake(from: self)
    finished(FinishedMember(operation: member, index: index), failed: false, takenNext: takenNext)
  }

  func finished(_ member: FinishedMember, failed: Bool, takenNext: Bool) {
    let accounts = accountsForAll || failed
    let (addsRunner, group, step) = state.withLock { state in
      let addsRunner = state.schedule.freeSlot(takenNext: takenNext)
      if accounts { return (addsRunner, state.schedule.beginAccounting(for: member) ? state.group : nil, Step()) }
      return (addsRunner, nil, state.settle(member))
    }
    if addsRunner { addRunner() }
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
    step.progress?.apply()
    if step.isDone { end() } else if step.isStuck { searchForSuspectedCycle() }
  }

  func end() {
    let (group, progress) = state.withLock { state in
      defer { (state.group, state.queue) = (nil, nil) }
      return (state.group, state.progress.end())
    }
    progress.apply()
    Trampoline.run { group?.endIfNotEnded() }
  }

  // MARK: Cancelling

  /// Cancels every member, and those that come later, and sees to it that they all finish.
  func cancelMembers() {
    let (members, wasWindingDown) = state.withLock { state in
      defer { state.schedule.isWindingDown = true }
      return (state.members.operations, state.schedule.isWindingDown)
    }
    if wasWindingDown { return }
    for member in members { member.cancel() }
    let waiting = state.withLock { state in
      defer { state.waitingForeignMembers = [] }
      return state.waitingForeignMembers
    }
    for member in members where !waiting.isEmpty && waiting.contains(ObjectIdentifier(member)) { becameReady(member) }
    change { _ in }
  }
}
