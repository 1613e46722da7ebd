import Foundation

/// Running plain Foundation operations as members.
///
/// A waiting plain member is in a private queue, so that Foundation detects when the member is cancelled. A dependency
/// on a *gate* keeps the member from starting before the group has a slot for it.
extension GroupEngine {
  /// A plain Foundation member that has not finished.
  struct PlainMember {
    enum Stage {
      /// The group has not started, or the member is being added.
      case added
      /// The engine waits for the member's dependencies.
      case waiting
      /// The member is in the schedule, or returns to it after a delay.
      case ready
      case started
    }

    let index: Int
    var stage = Stage.added
    var hold: Hold?
    /// The number of times that the member was not ready although all of its dependencies had finished.
    var refusals = 0
  }

  /// The place where a plain member waits.
  struct Hold {
    /// A queue for this member only. Suspended while the gate is open and the member has no slot.
    let queue: OperationQueue
    var gate: Operation
    var relay: FinishRelay
    var dependencies: [Operation]
  }

  /// The longest delay before the engine checks again whether a member is ready, as an exponent of two in milliseconds.
  /// A member can override `isReady`, and Foundation notifies only the queue of a change.
  private static let maximumDelayExponent = 6

  func claim(plain member: Operation, index: Int) -> OperationCore.ClaimAction {
    let id = ObjectIdentifier(member)
    if state.withLock({ $0.plainMembers[id] != nil }) { return .repeated }
    if member.isExecuting || member.isFinished { return .refused(because: "has been started") }
    if PlainMemberGate.holds(member) { return .refused(because: "is in a group") }
    let isReady = member.isReady || member.unfinishedDependencies.isEmpty
    let action = state.withLock { state -> (isRepeated: Bool, isHeld: Bool) in
      if state.plainMembers[id] != nil { return (true, false) }
      let isHeld = !isReady && state.schedule.phase != .gathering
      state.plainMembers[id] = PlainMember(index: index, stage: isReady ? .ready : isHeld ? .waiting : .added)
      return (false, isHeld)
    }
    if action.isRepeated { return .repeated }
    if action.isHeld { hold(member) }
    return .claimed(waits: !isReady, needsPermit: false, hasExtras: false)
  }

  /// Holds the plain members that are not ready when the group starts.
  ///
  /// - Returns: The members that have become ready since they were added.
  func beginPlainMembers() -> [Operation] {
    let members = state.withLock { state in
      state.plainMembers.values.filter { $0.stage == .added }.sorted { $0.index < $1.index }
        .compactMap { state.members[$0.index] }
    }
    return members.filter { member in
      if !member.isReady {
        hold(member)
        return false
      }
      state.withLock { $0.plainMembers[ObjectIdentifier(member)]?.stage = .ready }
      return true
    }
  }

  /// Places a member that is not ready in a private queue.
  private func hold(_ member: Operation) {
    let (id, dependencies) = (ObjectIdentifier(member), member.unfinishedDependencies)
    let queue = OperationQueue()
    let (gate, relay) = (PlainMemberGate(in: queue), makeRelay(for: member))
    let trace = trace(of: member)
    // Keeps the member alive as long as Foundation on Linux may use an unretained pointer to it.
    let end = BlockOperation { [weak self] in
      if let self { plainMemberDidFinish(member, trace) } else { member.forgetDependencies() }
    }
    let quality = state.withLock { state in
      let hold = Hold(queue: queue, gate: gate, relay: relay, dependencies: dependencies)
      state.plainMembers[id]?.hold = hold
      state.plainMembers[id]?.stage = .waiting
      return state.queue?.qualityOfService
    }
    if let quality, quality != .default { queue.qualityOfService = quality }
    member.addDependency(gate)
    end.addDependency(member)
    queue.addOperations([member, end], waitUntilFinished: false)
    // The member may have been cancelled meanwhile.
    queue.nudge()
    PlainMemberGate.recheckCancelled(member)
    relay.wait(for: dependencies)
  }

  private func makeRelay(for member: Operation) -> FinishRelay {
    FinishRelay { [weak self] in self?.dependenciesDidFinish(of: member) }
  }

  /// Makes a member ready, or waits for dependencies that were added meanwhile.
  private func dependenciesDidFinish(of member: Operation) {
    let (id, dependencies) = (ObjectIdentifier(member), member.unfinishedDependencies)
    let relay = dependencies.isEmpty ? nil : makeRelay(for: member)
    let hold = state.withLock { state -> Hold? in
      guard state.plainMembers[id]?.stage == .waiting else { return nil }
      if let relay {
        state.plainMembers[id]?.hold?.relay = relay
        state.plainMembers[id]?.hold?.dependencies = dependencies
        state.schedule.isCycleSuspected = true
      }
      return state.plainMembers[id]?.hold
    }
    guard let hold else { return }
    if let relay {
      relay.wait(for: dependencies)
      return searchForSuspectedCycleSoon()
    }
    hold.queue.isSuspended = true
    hold.gate.start()
    let isNews = state.withLock { state in
      guard state.plainMembers[id]?.stage == .waiting else { return false }
      state.plainMembers[id]?.stage = .ready
      return true
    }
    if isNews { becameReady(member) }
  }

  /// Starts a plain member that has been given a slot.
  func start(plain member: Operation) {
    let id = ObjectIdentifier(member)
    if !member.isReady, !member.isFinished {
      wait(again: member)
      return releaseSlot()
    }
    let (hold, isOnCycle) = state.withLock { state -> (Hold??, Bool) in
      guard state.plainMembers[id]?.stage == .ready else { return (nil, false) }
      state.plainMembers[id]?.stage = .started
      return (state.plainMembers[id]?.hold, state.plainErrors[id] != nil)
    }
    // The member was cancelled, and has finished, while it waited for the slot.
    guard let hold else { return releaseSlot() }
    // The members of a cycle are cancelled one by one. This member may be ready because an earlier one has finished. A
    // member that a caller has cancelled still has its dependencies, which may finish at the same time.
    if isOnCycle || member.isCancelled { member.cancelAsMember() }
    let trace = trace(of: member)
    // Foundation starts a cancelled operation only to finish it.
    if !member.isFinished, !member.isCancelled { trace?.send(.started) }
    if let hold {
      trace?.send(.executionReturned)
      hold.queue.nudge()
      // On Linux, Foundation may need to check an operation that overrides `isReady` twice.
      hold.queue.nudge()
      return
    }
    if !member.isFinished { member.start() }
    if member.isFinished { return plainMemberDidFinish(member, trace) }
    trace?.send(.executionReturned)
    FinishRelay { self.plainMemberDidFinish(member, trace) }.wait(for: [member])
  }

  /// Waits again for a member that was given a slot but is not ready. The member has a new dependency, or overrides
  /// `isReady`.
  private func wait(again member: Operation) {
    let (id, dependencies) = (ObjectIdentifier(member), member.unfinishedDependencies)
    if dependencies.isEmpty {
      let refusals = state.withLock { state in
        defer { state.plainMembers[id]?.refusals += 1 }
        return state.plainMembers[id]?.refusals ?? 0
      }
      let delay = Duration.milliseconds(1 << min(refusals, GroupEngine.maximumDelayExponent))
      _ = ClockTimer.start(after: delay, on: ContinuousClock()) { [weak self] in self?.becameReady(member) }
      return
    }
    state.withLock { $0.schedule.isCycleSuspected = true }
    guard let queue = state.withLock({ $0.plainMembers[id]?.hold?.queue }) else { return hold(member) }
    let (gate, relay) = (PlainMemberGate(in: queue), makeRelay(for: member))
    member.addDependency(gate)
    let previous = state.withLock { state in
      defer {
        let hold = Hold(queue: queue, gate: gate, relay: relay, dependencies: dependencies)
        state.plainMembers[id]?.hold = hold
        state.plainMembers[id]?.stage = .waiting
      }
      return state.plainMembers[id]?.hold
    }
    withExtendedLifetime(previous) { queue.nudge() }
    PlainMemberGate.recheckCancelled(member)
    relay.wait(for: dependencies)
  }

  /// Stores the error with which a plain member is cancelled. The member may not have been added completely.
  func note(_ error: any Error, ofPlain member: Operation) {
    state.withLock { $0.plainErrors[ObjectIdentifier(member)] = error }
  }

  /// Reports a plain member that has finished.
  ///
  /// - Parameter trace: The trace that recorded the member's start. Another trace may have been attached since.
  private func plainMemberDidFinish(_ member: Operation, _ trace: OperationTrace?) {
    (trace ?? self.trace(of: member))?.send(.ended(member))
    let id = ObjectIdentifier(member)
    let (end, error) = state.withLock { state in
      (state.plainMembers.removeValue(forKey: id), state.plainErrors.removeValue(forKey: id))
    }
    guard let end else { return }
    if let hold = end.hold { hold.relay.stop(waitingFor: hold.dependencies) }
    member.forgetDependencies()
    let hasSlot = end.stage == .started
    let finished = FinishedMember(operation: member, index: end.index, holdsSlot: hasSlot, error: error)
    self.finished(finished, failed: error != nil, takenNext: hasSlot && GroupRunner.isAboutToTake(from: self))
  }

  /// Returns the trace of a plain Foundation operation, which cannot store it itself.
  private func trace(of member: Operation) -> OperationTrace? {
    state.withLock { $0.group }?.trace?.trace(of: member)
  }
}

extension Operation {
  /// Cancels a member of a group.
  ///
  /// The dependencies of a plain Foundation operation are removed first, because a cancelled operation does not wait
  /// for them. On Linux, a finishing operation locks itself, and then each of its dependents. Operations on a cycle
  /// that finish at the same time would deadlock.
  func cancelAsMember() {
    if !(self is AsyncOperation), !isFinished { removeDependencies(unfinishedDependencies) }
    cancel()
  }

  private static let removalLock = NSRecursiveLock()

  /// Removes dependencies of a plain Foundation operation, one operation at a time.
  ///
  /// On Linux, `removeDependency` locks the dependency and then this operation. Two operations that wait for each other
  /// would deadlock. The lock is recursive, because Foundation reads `isReady`, which a subclass can override.
  func removeDependencies(_ operations: [Operation]) {
    if operations.isEmpty { return }
    Operation.removalLock.withLock { for operation in operations { removeDependency(operation) } }
  }
}
