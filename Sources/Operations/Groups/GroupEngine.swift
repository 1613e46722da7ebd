import Foundation

/// Runs the members of a group.
///
/// Members are not enqueued one by one: Foundation walks all the waiting operations of a queue at every finish. The
/// engine has a list of the ready ones, fed by their ledgers, and a few runners on a private queue that take from it. No
/// thread waits for anything here, so groups may be nested to any depth.
final class GroupEngine: OperationSupervisor {
  /// How many members a runner starts before it lets other work have the thread.
  private static let quantum = 256
  /// How far the circle search goes when a member is added to a running group.
  private static let searchSteps = 1000

  private struct State {
    var schedule = GroupSchedule()
    var members: [Operation] = []
    /// Plain Foundation members, which cannot be marked as taken.
    var foreignMembers: Set<ObjectIdentifier> = []
    /// Those of them that wait for something, and will be told that they can run.
    var waitingForeignMembers: Set<ObjectIdentifier> = []
    /// From the beginning to the end: a running group stays alive.
    var group: GroupOperation?
    var queue: OperationQueue?
  }

  private let state = Locked(State())

  var members: [Operation] { state.withLock { $0.members } }

  /// The members, which the engine forgets.
  func takeMembers() -> [Operation] {
    state.withLock { state in
      defer { state.members = [] }
      return state.members
    }
  }

  var limit: Int {
    get { state.withLock { $0.schedule.limit } }
    set { change { $0.limit = newValue } }
  }

  var isSuspended: Bool {
    get { state.withLock { $0.schedule.isSuspended } }
    set {
      change { schedule in
        schedule.isSuspended = newValue
        if !newValue { schedule.waitsForMembers = false }
      }
    }
  }

  private func change(_ change: (inout GroupSchedule) -> Void) {
    let (addsRunner, isDone) = state.withLock { state in
      change(&state.schedule)
      return (state.schedule.phase == .running && state.schedule.addRunnerIfUseful(), state.schedule.endIfDone())
    }
    if addsRunner { addRunner() }
    if isDone { end() }
  }

  // MARK: Members come

  enum Admission {
    /// They will run, or be finished unexecuted if the group is winding down.
    case admitted
    /// The group has ended because it was wound down: they have been cancelled and have finished.
    case cancelled
    /// The group has ended by itself.
    case refused
  }

  /// Takes in operations that have been claimed for the group.
  func add(_ operations: [Operation]) -> Admission {
    let (phase, isWindingDown) = state.withLock { state in
      let phase = state.schedule.phase
      if phase != .ended { state.members += operations }
      if phase == .running {
        state.schedule.admit(operations.count)
        state.schedule.waitsForMembers = false
      }
      return (phase, state.schedule.isWindingDown)
    }
    if isWindingDown { for operation in operations { operation.cancel() } }
    switch phase {
    case .gathering: return .admitted
    case .running:
      if !isWindingDown { for operation in operations { searchForCycle(through: operation) } }
      enroll(operations)
      return .admitted
    case .ended:
      guard isWindingDown else { return .refused }
      for operation in operations { startAlone(operation) }
      return .cancelled
    }
  }

  /// Plain Foundation operations do not know what they are in. Returns false for one that is a member already.
  func claimForeign(_ operation: Operation) -> Bool {
    state.withLock { $0.foreignMembers.insert(ObjectIdentifier(operation)).inserted }
  }

  /// Begins to run the members; all of them are finished in the end, also if none is to be executed.
  func begin(_ group: GroupOperation, windingDown: Bool) {
    let queue = OperationQueue()
    queue.name = "Operations.GroupOperation " + group.displayName
    if group.qualityOfService != .default { queue.qualityOfService = group.qualityOfService }
    let (members, isWindingDown) = state.withLock { state in
      state.group = group
      state.queue = queue
      if windingDown { state.schedule.isWindingDown = true }
      state.schedule.begin(admitting: state.members.count)
      let (isWindingDown, isSuspended) = (state.schedule.isWindingDown, state.schedule.isSuspended)
      if state.members.isEmpty, isSuspended, !isWindingDown { state.schedule.waitsForMembers = true }
      return (state.members, isWindingDown)
    }
    if !isWindingDown { searchForCycle() }
    enroll(members)
  }

  private func enroll(_ members: [Operation]) {
    let ready = members.filter(enroll)
    let (addsRunner, isDone) = state.withLock { state in
      for member in ready { _ = state.schedule.becameReady(member, takenNext: true) }
      return (state.schedule.addRunnerIfUseful(), state.schedule.admitted())
    }
    if addsRunner { addRunner() }
    if isDone { end() }
  }

  /// Arranges for the engine to be told when the member is ready, and returns whether it is so already.
  private func enroll(_ member: Operation) -> Bool {
    if let own = member as? AsyncOperation {
      return own.core.withLock { core in
        core.supervisor = self
        core.owesReadiness = core.ledger.remaining > 0 && !core.lifecycle.isCancelled
        return !core.owesReadiness
      }
    }
    let waitedFor = member.isReady ? [] : member.dependencies.filter { !$0.isFinished }
    if waitedFor.isEmpty { return true }
    _ = state.withLock { $0.waitingForeignMembers.insert(ObjectIdentifier(member)) }
    // The relay keeps the member alive as long as Foundation, on Linux, may use a pointer to it that retains nothing.
    FinishRelay { self.foreignMemberIsReady(member) }.wait(for: waitedFor)
    return false
  }

  private func foreignMemberIsReady(_ member: Operation) {
    guard state.withLock({ $0.waitingForeignMembers.remove(ObjectIdentifier(member)) }) != nil else { return }
    becameReady(member)
  }

  // MARK: OperationSupervisor

  func memberIsReady(_ member: AsyncOperation) { becameReady(member) }

  func memberDidFinish(_ member: AsyncOperation) { finished(member) }

  func memberGainedDependency(_ member: AsyncOperation) {
    state.withLock { $0.schedule.isCycleSuspected = true }
    searchForSuspectedCycle()
  }

  private func becameReady(_ member: Operation) {
    let takenNext = GroupRunner.isAboutToTake(from: self)
    if state.withLock({ $0.schedule.becameReady(member, takenNext: takenNext) }) { addRunner() }
  }

  // MARK: Members run

  private func addRunner() {
    state.withLock { $0.queue }?.addOperation { [self] in work() }
  }

  private func work() {
    let addsRunner = GroupRunner.run(for: self) { runner in
      state.withLock { $0.schedule.runnerBegan() }
      for _ in 0..<GroupEngine.quantum {
        guard case .run(let member, let addsRunner) = state.withLock({ $0.schedule.take() }) else { return false }
        if addsRunner { addRunner() }
        start(member, by: runner)
      }
      return state.withLock { $0.schedule.addRunnerIfUseful() }
    }
    if addsRunner { addRunner() }
    searchForSuspectedCycle()
  }

  /// A member with a quality of service of its own gets a work item of its own, so that the system sees it.
  private func start(_ member: Operation, by runner: GroupRunner) {
    let quality = member.qualityOfService
    guard quality != .default else { return runner.run(member) { start(member) } }
    let block = BlockOperation { [self] in start(member) }
    block.qualityOfService = quality
    state.withLock { $0.queue }?.addOperation(block)
  }

  private func start(_ member: Operation) {
    guard let own = member as? AsyncOperation else { return startForeign(member) }
    switch own.startAsMember() {
    case .begun: return
    case .notReady:
      let takenNext = GroupRunner.isRunning(own)
      if state.withLock({ $0.schedule.handBack(takenNext: takenNext) }) { addRunner() }
    }
  }

  private func startForeign(_ member: Operation) {
    if !member.isFinished, member.isReady { member.start() }
    if member.isFinished { return finished(member) }
    // It finishes later, or is not ready in Foundation's books yet, though all it waited for has finished: those are
    // settled by another thread at this moment. Foundation starts it when they are.
    let isLeftToFoundation = !member.isExecuting && !member.isReady
    FinishRelay { self.finished(member) }.wait(for: [member])
    guard isLeftToFoundation, let queue = state.withLock({ $0.queue }) else { return }
    queue.addOperation(member)
    queue.nudge()
  }

  /// Finishes an operation that was added to a group after its cancellation had ended it.
  private func startAlone(_ operation: Operation) {
    guard let own = operation as? AsyncOperation else { return operation.start() }
    _ = own.startAsMember()
  }

  // MARK: Members end

  private func finished(_ member: Operation) {
    let takenNext = GroupRunner.isAboutToTake(from: self)
    let (addsRunner, accounts, group) = state.withLock { state in
      let (addsRunner, accounts) = state.schedule.finished(member, takenNext: takenNext)
      return (addsRunner, accounts, state.group)
    }
    if addsRunner { addRunner() }
    guard accounts, let group else { return }
    group.account(for: member)
    var (next, isDone) = state.withLock { $0.schedule.accounted(for: 1) }
    while !next.isEmpty {
      for member in next { group.account(for: member) }
      (next, isDone) = state.withLock { $0.schedule.accounted(for: next.count) }
    }
    if isDone { end() } else { searchForSuspectedCycle() }
  }

  private func end() {
    let group = state.withLock { state in
      defer { (state.group, state.queue) = (nil, nil) }
      return state.group
    }
    Trampoline.run { group?.membersDidEnd() }
  }

  // MARK: Cancelling

  /// Cancels every member, and those that come later, and sees to it that they all finish.
  func cancelMembers() {
    let (members, wasWindingDown) = state.withLock { state in
      defer { state.schedule.isWindingDown = true }
      return (state.members, state.schedule.isWindingDown)
    }
    if wasWindingDown { return }
    for member in members { member.cancel() }
    let waiting = state.withLock { state in
      defer { state.waitingForeignMembers = [] }
      return state.waitingForeignMembers
    }
    for member in members where !waiting.isEmpty && waiting.contains(ObjectIdentifier(member)) { becameReady(member) }
    change { $0.waitsForMembers = false }
  }

  // MARK: Circles

  private func searchForCycle() {
    guard let group = state.withLock({ $0.group }) else { return }
    if case .found(let cycle) = DependencyCycle.search(from: group) { group.fail(because: cycle) }
  }

  /// A newcomer closes a circle only if somebody waits for it. A search that gets long is left for when nothing moves.
  private func searchForCycle(through operation: Operation) {
    guard let own = operation as? AsyncOperation, own.core.withLock({ !$0.ledger.dependents.isEmpty }) else { return }
    switch DependencyCycle.search(from: own, steps: GroupEngine.searchSteps) {
    case .found(let cycle): state.withLock { $0.group }?.fail(because: cycle)
    case .none: return
    case .unfinished: state.withLock { $0.schedule.isCycleSuspected = true }
    }
  }

  private func searchForSuspectedCycle() {
    let isDue = state.withLock { state in
      guard state.schedule.isCycleSuspected, state.schedule.isStuck else { return false }
      state.schedule.isCycleSuspected = false
      return true
    }
    if isDue { searchForCycle() }
  }
}
