import Foundation

/// How members are run: by whom, on which thread, and what a slot is given to.
extension GroupEngine {
  /// How many members a runner starts before it lets other work have the thread.
  private static let quantum = 256
  /// How long a runner that is about to take the next member is trusted to do it.
  private static let patience = DispatchTimeInterval.milliseconds(20)

  /// Begins to run the members, once; all of them are finished in the end, also if none is to be executed.
  func begin(_ group: GroupOperation, windingDown: Bool) {
    let queue = GroupQueue()
    queue.name = "Operations.GroupOperation " + group.displayName
    if group.qualityOfService != .default { queue.qualityOfService = group.qualityOfService }
    // Its own, or what the group around it gave to who started it: not looked for all the way out.
    let clock = group.core.withLock { $0.extras?.clock ?? $0.starter?.clock }
    let isFirst = state.withLock { state in
      if state.schedule.phase != .gathering { return false }
      state.group = group
      state.clock = clock
      state.queue = queue
      state.isDeadlineDue = !windingDown
      if windingDown { state.schedule.isWindingDown = true }
      state.schedule.begin()
      return true
    }
    if !isFirst { return }
    // Whoever has cancelled the group may not have come to its members yet.
    if windingDown { cancelMembers() }
    searchForSuspectedCycle(evenIfMoving: true)
    let ready = beginPlainMembers().map { ReadyMember($0) }
    if !ready.isEmpty { state.withLock { $0.schedule.append(ready) } }
    // If there is nobody to be started the time begins all the same.
    state.withLock { $0.schedule.mayHandOut ? nil : $0.takeDueDeadline() }?.startDeadline()
    admitted()
  }

  func becameReady(_ member: Operation) {
    let takenNext = GroupRunner.isAboutToTake(from: self)
    let member = ReadyMember(member)
    carryOut(state.withLock { $0.schedule.becameReady(member, takenNext: takenNext) })
  }

  func addRunner() {
    state.withLock { $0.queue }?.addOperation { [self] in work() }
  }

  func carryOut(_ help: GroupSchedule.Help) {
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
        let (take, due, isInOrder) = state.withLock {
          ($0.schedule.take(), $0.takeDueDeadline(), $0.schedule.isHandingOut)
        }
        due?.startDeadline()
        guard case .run(let member, let addsRunner, let cancelled) = take else { return false }
        if addsRunner { addRunner() }
        if cancelled { cancelUnlessStarted(member) }
        let quality = member.qualityOfService
        if isInOrder, quality != .default { handedOut() }
        if quality == .default {
          runner.run(member) { if isInOrder { startInOrder(member, by: runner) } else { start(member, by: runner) } }
        } else {
          start(member, at: quality)
        }
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

  func start(_ member: Operation, by runner: GroupRunner) {
    guard let own = member as? AsyncOperation else { return start(plain: member) }
    carryOut(own.startAsMember(by: runner), own, by: runner)
  }

  func carryOut(_ beginning: AsyncOperation.Beginning, _ member: AsyncOperation, by runner: GroupRunner) {
    switch beginning {
    case .begun, .awaitGate: return
    case .needsPermit(let permit): start(member, ifGranted: permit.acquire(isStarted: false), by: runner)
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
}
