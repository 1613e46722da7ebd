import Foundation

/// Running members: runners, threads and slots.
extension GroupEngine {
  /// The number of members that a runner starts before it yields its thread to other work.
  private static let quantum = 256
  /// The time that the engine gives a runner to take the next member before adding another runner.
  private static let patience = DispatchTimeInterval.milliseconds(20)

  /// Starts the members. Only the first call has an effect.
  ///
  /// - Parameter draining: Whether the members finish without executing.
  func begin(_ group: GroupOperation, draining: Bool) {
    let queue = GroupQueue()
    queue.name = "Operations.GroupOperation " + group.displayName
    if group.qualityOfService != .default { queue.qualityOfService = group.qualityOfService }
    // The group's own clock, or the clock of the enclosing group. The starter stores the latter, which saves a search
    // through all enclosing groups.
    let clock = group.core.withLock { $0.extras?.clock ?? $0.starter?.clock }
    let (isFirst, unordered) = state.withLock { state -> (Bool, [Operation]?) in
      if state.schedule.phase != .gathering { return (false, nil) }
      state.group = group
      state.clock = clock
      state.queue = queue
      state.isDeadlineDue = !draining
      if draining { state.schedule.isDraining = true }
      state.schedule.begin()
      guard state.hasHadPermits else { return (true, nil) }
      state.schedule.postponeStarts()
      return (true, state.schedule.takeReady())
    }
    if !isFirst { return }
    // The thread that cancelled the group may not have cancelled its members yet.
    if draining { cancelMembers() }
    searchForSuspectedCycle(evenIfRunning: true)
    let plain = beginPlainMembers()
    if let unordered {
      offer(members, ready: unordered + plain)
      resumeStarts()
    } else if !plain.isEmpty {
      let ready = plain.map { ReadyMember($0) }
      state.withLock { $0.schedule.append(ready) }
    }
    // If no member can start, the time of the group begins now.
    state.withLock { $0.schedule.mayHandOut ? nil : $0.takeDueDeadline() }?.startDeadline()
    membersWereAdded()
  }

  /// Adds ready members to the schedule, and requests the permits of members that need one, in the order of the members.
  /// None of them starts before the last has been added, because it may make another member ready.
  func offer(_ members: some Sequence<Operation>, ready: [Operation]) {
    let ready = Set(ready.map { ObjectIdentifier($0) })
    state.withLock { $0.schedule.postponeStarts() }
    defer { resumeStarts() }
    for member in members {
      if ready.contains(ObjectIdentifier(member)) {
        becameReady(member)
      } else if let own = member as? AsyncOperation {
        own.requestPermit(as: self)
      }
    }
  }

  private func resumeStarts() {
    if state.withLock({ $0.schedule.resumeStarts() }) { addRunner() }
  }

  func becameReady(_ member: Operation) {
    let takenNext = GroupRunner.isAboutToTake(from: self)
    let isReturning = (member as? AsyncOperation)?.core.withLock { $0.isReturning } ?? false
    let member = ReadyMember(member, isReturning: isReturning)
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
      // A member can finish in the middle of its `execute()`, and then continue for long or wait for a member that this
      // runner was about to take.
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
        if cancelled { cancelUnlessStarted(member) }
        let quality = member.qualityOfService
        if quality == .default {
          runner.run(member) { start(member, by: runner) }
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

  /// Starts a member in a separate work item, so that the system applies the quality of service of the member.
  private func start(_ member: Operation, at quality: QualityOfService) {
    let block = BlockOperation { [self] in start(member, by: makeRunner()) }
    block.qualityOfService = quality
    state.withLock { $0.queue }?.addOperation(block)
  }

  func start(_ member: Operation, by runner: GroupRunner) {
    guard let own = member as? AsyncOperation else { return start(plain: member) }
    switch own.startAsMember(by: runner) {
    case .begun, .awaitGate: return
    case .isGone: releaseSlot()
    case .notReady:
      releaseSlot()
      searchForSuspectedCycle()
    }
  }

  /// Releases the slot of a member that pauses or was not started.
  func releaseSlot() {
    let (help, step) = state.withLock { state -> (GroupSchedule.Help, Step) in
      if state.isDisbanded { return (.none, Step()) }
      return (state.schedule.releaseSlot(takenNext: false), state.nextStep())
    }
    carryOut(help)
    carryOut(step)
  }
}

/// Finishing members and the group.
extension GroupEngine {
  func finished(_ member: FinishedMember, failed: Bool, takenNext: Bool) {
    var member = member
    let (help, group, step) = state.withLock { state -> (GroupSchedule.Help, GroupOperation?, Step) in
      if state.isDisbanded { return (.none, nil, Step()) }
      let accounts = (accountsForAll || failed) && state.group != nil
      member.postponesStarts = failed && accounts && state.errorPolicy != .collect
      if member.postponesStarts { state.schedule.postponeStarts() }
      let help = member.holdsSlot ? state.schedule.releaseSlot(takenNext: takenNext) : .none
      if accounts { return (help, state.schedule.beginAccounting(for: member) ? state.group : nil, Step()) }
      return (help, nil, state.settle(member))
    }
    carryOut(help)
    if let group { account(for: member, in: group) } else { carryOut(step) }
  }

  /// Passes the results of finished members to the group, one at a time, until none is left.
  private func account(for first: FinishedMember, in group: GroupOperation) {
    var batch = [first]
    while !batch.isEmpty {
      for member in batch {
        group.account(for: member)
        let (addsRunner, step) = state.withLock { state in
          (member.postponesStarts && state.schedule.resumeStarts(), state.settle(member))
        }
        if addsRunner { addRunner() }
        carryOut(step)
      }
      batch = state.withLock { $0.schedule.nextToAccount() }
    }
    carryOut(state.withLock { $0.nextStep() })
  }

  func carryOut(_ step: Step) {
    step.roomWaiters.resume()
    if step.updatesProgress { updateProgress() }
    if step.isDone { end() } else if step.searchesForCycle { searchForSuspectedCycle() }
  }

  func end() {
    let group = state.withLock { state in
      defer { (state.group, state.queue) = (nil, nil) }
      return state.group
    }
    endProgress()
    Trampoline.run { group?.finishNow() }
  }
}

/// A member that has finished, with its index in the member list.
struct FinishedMember {
  let operation: Operation
  let index: Int
  /// Whether the member has a slot to release.
  var holdsSlot = true
  /// The error of a plain Foundation operation, which cannot store it itself.
  var error: (any Error)?
  /// Whether no member starts until the group has processed the failure of this one.
  var postponesStarts = false
}
