import Foundation
import Synchronization

extension GroupEngine {
  /// Members that a runner starts before it yields its thread to other work.
  private static let quantum = 256
  /// The time that the engine gives a runner to take the next member before adding another runner.
  private static let patience = DispatchTimeInterval.milliseconds(20)

  /// Starts the members, on the first call only. If `draining` is true, they finish without executing.
  func start(_ group: GroupOperation, draining: Bool) {
    // Members find the work around the group through it.
    if group.core.withLock({ $0.outer })?.core.withLock({ $0.work }) != nil { _ = group.ownWork }
    let plainMembers = state.withLock { exchange(&$0.plainMembers, with: []) }
    for member in plainMembers where !draining { member.adoptChanges() }
    let queue = GroupQueue(of: group)
    guard let membersArrive = state.withLock({ $0.schedule.start(group, in: queue, draining: draining) }) else {
      return
    }
    // The thread that cancelled the group may not have cancelled its members yet.
    if draining { drain(by: .cancel) }
    watch()
    if membersArrive {
      // The members are read last, so that they include ready ones that other threads add meanwhile.
      let ready = state.withLock { $0.schedule.ready.takeAll() }
      letArrive(members, ready: Set(ready.map { ObjectIdentifier($0) }))
      change { $0.startObstacles -= 1 }
    }
    let (group, action) = state.withLock { state in
      let group = state.schedule.mayHandOut ? nil : state.schedule.beginRunning()
      state.schedule.endAddition()
      return (group, state.decideAction())
    }
    group?.startDeadline()
    carryOut(action)
  }

  /// Adds ready members to the schedule, and lets members with keys wait their turn, in the order of the members.
  /// None of them starts before the last has been added, because it may make another member ready.
  func letArrive(_ members: [AsyncOperation], ready: Set<ObjectIdentifier>) {
    state.withLock { $0.schedule.startObstacles += members.count - 1 }
    for member in members {
      if ready.contains(ObjectIdentifier(member)) {
        becameReady(member)
      } else {
        member.changeWait { $0.groupDidStart(self) }
      }
    }
    change { $0.startObstacles -= members.count - 1 }
  }

  /// A member without keys needs a slot.
  func becameReady(_ member: AsyncOperation, number: Int? = nil) {
    let runnerTakesNext = GroupRunner.isAboutToTake(from: self)
    let (priority, flow) = (member.queuePriority, member.flow)
    let action = state.withLock { state in
      state.schedule.becameReady(member, priority, of: flow, number: number)
      return state.decideAction(runnerTakesNext: runnerTakesNext)
    }
    moveMember(member, nil, from: priority)
    carryOut(action)
  }

  func fulfill(_ request: GroupSchedule.RunnerRequest) {
    switch request {
    case .none: return
    case .addRunner: Trampoline.run { [self] in startMembersHere() }
    case .watch:
      // A member can finish inside `execute()`, and then continue for long, or wait for the member that is next.
      DispatchQueue.global().asyncAfter(deadline: .now() + GroupEngine.patience) { [weak self] in
        guard let self else { return }
        fulfill(state.withLock { $0.schedule.endWatch() })
      }
    }
  }

  /// Starts a few members that any thread can start, up to one that needs a runner. Until then, the runner stays requested,
  /// so that no other thread starts members.
  private func startMembersHere() {
    var runner: GroupRunner?
    while Trampoline.countStep() {
      guard let member = state.withLock({ $0.schedule.nextForRequestedRunner() }) else { return }
      guard member.startsAnywhere else { break }
      let (next, group) = state.withLock { ($0.schedule.handOut(member), $0.schedule.beginRunning()) }
      group?.startDeadline()
      guard let next else { break }
      fulfill(next.runner)
      guard prepare(next) else { continue }
      runner = runner ?? makeRunner()
      if let runner { startMember(next, by: runner) }
    }
    addToQueue { [self] in startMembers(as: $0) }
  }

  private func makeRunner() -> GroupRunner? {
    guard let queue = state.withLock({ $0.schedule.life.queue }) else { return nil }
    // The runner stores the clock of the enclosing group, which saves a search through all enclosing groups.
    return GroupRunner(for: self, in: queue, clock: owner?.assignedClock)
  }

  private func addToQueue(quality: QualityOfService = .default, _ body: @escaping @Sendable (GroupRunner) -> Void) {
    guard let runner = makeRunner() else { return }
    runner.continueOperation(at: quality) { body(runner) }
  }

  private func startMembers(as runner: GroupRunner) {
    let request = runner.run {
      for count in 0..<GroupEngine.quantum {
        let (next, isDraining, group) = state.withLock { state in
          if count == 0 { state.schedule.isRunnerRequested = false }
          return (state.schedule.handOutNext(), state.schedule.isDraining, state.schedule.beginRunning())
        }
        group?.startDeadline()
        guard let next else { return GroupSchedule.RunnerRequest.none }
        let member = next.member
        fulfill(next.runner)
        guard prepare(next) else { continue }
        // The thread that cancels all members may not have reached this one.
        if isDraining { member.cancel(nil, in: self) { $0 != .executing } }
        let quality = member.qualityOfService
        if quality == .default {
          runner.run(member) { startMember(next, by: runner) }
        } else {
          // A work item of its own, so that the system applies the quality of service.
          addToQueue(quality: quality) { [self] in startMember(next, by: $0) }
        }
      }
      return state.withLock { $0.schedule.requestRunner() }
    }
    fulfill(request)
  }

  /// Returns false if the member has a lower priority now, and was put back.
  private func prepare(_ next: GroupSchedule.HandOut) -> Bool {
    (next.member as? PlainMember)?.adoptChanges()
    if next.keys != nil { next.member.noteKeyWait() }
    guard let rank = next.rank else { return true }
    // Read without the lock, because a subclass can override it.
    let priority = next.member.queuePriority.rawValue
    if priority >= rank.priority { return true }
    state.withLock { $0.schedule.putBack(next.member, ReadyList.Rank(priority: priority, ticket: rank.ticket)) }
    return false
  }

  private func startMember(_ next: GroupSchedule.HandOut, by runner: GroupRunner) {
    if next.member.startOrResume(by: runner, number: next.rank?.ticket, hasSlot: next.hasSlot) { return }
    guard let keys = next.keys else { return next.hasSlot ? releaseSlot(of: next.member) : () }
    leave(keys, of: next.member, forGood: false, unlessHeld: false)
    // It may have become ready again while it held its keys.
    next.member.changeWait { $0.requestSlotAgain() }
  }

  /// Called when a member without keys needs no slot without having finished.
  func releaseSlot(of member: AsyncOperation) { change { $0.ready.returnSlot(of: ObjectIdentifier(member)) } }

  // MARK: Finishing members and the group

  /// Collects the result of a member, one at a time, before the member closes.
  func collect(_ member: AsyncOperation) {
    let (group, isFirst) = state.withLock { state in
      // A member can expire before the group starts.
      let group = state.schedule.life.isGathering ? owner : state.schedule.life.group
      return (group, group != nil && state.schedule.beginCollecting(member))
    }
    // A member may finish after the group has been deallocated.
    guard let group else { return member.close() }
    guard isFirst else { return }
    var batch = [member]
    while !batch.isEmpty {
      for member in batch {
        withAutoreleasePool { group.collect(member) }
        member.close()
      }
      batch = state.withLock { $0.schedule.takeWaitingResults() }
    }
    carryOut(state.withLock { Action(outcome: $0.schedule.endIfDone()) })
  }

  func memberDidClose(_ member: AsyncOperation, _ end: OperationCore.End, runnerTakesNext: Bool) {
    workContinues(after: end, of: member)
    let (id, index) = (ObjectIdentifier(member), end.membership?.index ?? 0)
    let action = state.withLock { state in
      state.removeMember(runnerTakesNext: runnerTakesNext) { state in
        // After all dependents have been notified, so that the most urgent one takes it.
        if end.ownsSlot {
          returningSlots.wrappingSubtract(1, ordering: .relaxed)
          state.schedule.ready.returnSlot(of: id)
        }
        // It was cancelled when its pause was over.
        if end.extras?.pause != nil { state.schedule.ready.remove(id) }
        // The caller has another reference, so nothing is released under the lock.
        _ = state.members.remove(index)
        state.progress.complete(id)
      }
    }
    carryOut(action)
  }

  func carryOut(_ action: Action) {
    if !action.keyEffects.isEmpty { KeyRegistry.perform(action.keyEffects) }
    fulfill(action.runner)
    for waiter in action.waiters { waiter() }
    if action.updatesProgress { updateProgress() }
    switch action.outcome {
    // The caller releases the action, and with it the group, without a lock.
    case .none, .release: return
    case .end(let life):
      withExtendedLifetime(state.withLock { $0.schedule.takeStaleEntries() }) {}
      workDidEnd()
      if let group = life.group { Trampoline.run { group.finishNow() } }
    }
  }
}

extension GroupEngine.State {
  /// Removes a finished member, as `change` does, and continues with the others.
  mutating func removeMember(runnerTakesNext: Bool, _ change: (inout Self) -> Void) -> GroupEngine.Action {
    if schedule.hasEnded { return GroupEngine.Action() }
    return changeMembers(runnerTakesNext: runnerTakesNext) { state in
      change(&state)
      state.schedule.memberWasRemoved()
    }
  }

  mutating func changeMembers(runnerTakesNext: Bool = false, _ change: (inout Self) -> Void) -> GroupEngine.Action {
    let count = memberCount
    change(&self)
    var action = decideAction(runnerTakesNext: runnerTakesNext)
    action.waiters = roomWaiters.take(downTo: memberCount, from: count)
    action.updatesProgress = progress.isFollowed
    return action
  }
}
