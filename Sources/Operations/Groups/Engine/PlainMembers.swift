import Foundation

/// The plain Foundation members of a group that have not finished. A waiting one is in a private queue, so that
/// Foundation detects when it is cancelled. A *gate* keeps it from starting before the group has a slot for it.
struct PlainMembers {
  enum Stage {
    /// The member was not ready when it was added, and the group has not started.
    case added
    /// The member was ready when it was added or when the group started, or is about to be held.
    case free
    case held(Hold)
    case started(Hold?)
  }

  struct Hold {
    /// A queue for this member only. Suspended while the gate is open and the member has no slot.
    let queue: OperationQueue
    let gate: PlainMemberGate
    var relay: FinishRelay
    var dependencies: [Operation]

    func stopWaiting() { relay.stop(waitingFor: dependencies) }
  }

  struct Member {
    let index: Int
    var stage: Stage
    /// How often the member was not ready although all of its dependencies had finished.
    var refusals = 0

    var hold: Hold? {
      switch stage {
      case .added, .free: nil
      case .held(let hold): hold
      case .started(let hold): hold
      }
    }
  }

  private var members: [ObjectIdentifier: Member] = [:]
  /// The errors with which members were cancelled. Such a member may not have been added completely.
  private var errors: [ObjectIdentifier: any Error] = [:]

  var count: Int { members.count }
  var holds: [Hold] { members.values.compactMap(\.hold) }

  var addedIndices: [Int] {
    members.values.compactMap { if case .added = $0.stage { $0.index } else { nil } }.sorted()
  }

  subscript(operation: Operation) -> Member? {
    get { members[ObjectIdentifier(operation)] }
    set { members[ObjectIdentifier(operation)] = newValue }
  }

  mutating func note(_ error: any Error, of operation: Operation) { errors[ObjectIdentifier(operation)] = error }

  /// Starts a member that has been given a slot. Nil if it was cancelled, and has finished, while it waited.
  mutating func start(_ operation: Operation) -> (hold: Hold?, isOnCycle: Bool)? {
    guard let member = self[operation] else { return nil }
    self[operation]?.stage = .started(member.hold)
    return (member.hold, errors[ObjectIdentifier(operation)] != nil)
  }

  mutating func remove(_ operation: Operation) -> (member: Member?, error: (any Error)?) {
    let id = ObjectIdentifier(operation)
    return (members.removeValue(forKey: id), errors.removeValue(forKey: id))
  }
}

extension GroupEngine {
  /// The longest delay before `isReady` is read again, as an exponent of two in milliseconds. A member can override
  /// it, and Foundation notifies only the queue of a change.
  private static let maximumDelayExponent = 6

  func claim(plain member: Operation, index: Int) -> OperationCore.ClaimAction {
    if state.withLock({ $0.plainMembers[member] != nil }) { return .repeated }
    if member.isExecuting || member.isFinished { return .refused(because: "has been started") }
    if PlainMemberGate.holds(member) { return .refused(because: "is in a group") }
    let isReady = member.isReady || member.unfinishedDependencies.isEmpty
    let stage = state.withLock { state -> PlainMembers.Stage? in
      if state.plainMembers[member] != nil { return nil }
      let stage: PlainMembers.Stage = !isReady && state.schedule.life.isGathering ? .added : .free
      state.plainMembers[member] = PlainMembers.Member(index: index, stage: stage)
      return stage
    }
    guard let stage else { return .repeated }
    if case .free = stage, !isReady { hold(member) }
    return .claimed(waits: !isReady, needsTurn: false, isAwaited: false, hasWeight: false, isCancelled: false)
  }

  /// - Returns: The members that have become ready since they were added. The other ones are held.
  func beginPlainMembers() -> [Operation] {
    let members = state.withLock { state in state.plainMembers.addedIndices.compactMap { state.members[$0] } }
    return members.filter { member in
      let isReady = member.isReady
      if isReady { state.withLock { $0.plainMembers[member]?.stage = .free } } else { hold(member) }
      return isReady
    }
  }

  private func hold(_ member: Operation) {
    let queue = OperationQueue()
    if let quality = state.withLock({ $0.schedule.life.queue?.qualityOfService }), quality != .default {
      queue.qualityOfService = quality
    }
    let trace = trace(of: member)
    // Keeps the member alive as long as Foundation on Linux may use an unretained pointer to it.
    let end = BlockOperation { [weak self] in
      if let self { plainMemberDidFinish(member, trace) } else { member.forgetDependencies() }
    }
    end.addDependency(member)
    hold(member, in: queue) { queue.addOperations([member, end], waitUntilFinished: false) }
  }

  private func hold(_ member: Operation, in queue: OperationQueue, enqueue: () -> Void = {}) {
    let dependencies = member.unfinishedDependencies
    let hold = PlainMembers.Hold(
      queue: queue,
      gate: PlainMemberGate(in: queue),
      relay: makeRelay(for: member),
      dependencies: dependencies
    )
    member.addDependency(hold.gate)
    let previous = state.withLock { state in
      defer { state.plainMembers[member]?.stage = .held(hold) }
      return state.plainMembers[member]?.hold
    }
    enqueue()
    // The member may have been cancelled meanwhile.
    withExtendedLifetime(previous) { queue.nudge() }
    PlainMemberGate.recheckCancelled(member)
    hold.relay.wait(for: dependencies)
  }

  private func makeRelay(for member: Operation) -> FinishRelay {
    FinishRelay { [weak self] in self?.dependenciesDidFinish(of: member) }
  }

  private func dependenciesDidFinish(of member: Operation) {
    let dependencies = member.unfinishedDependencies
    let relay = dependencies.isEmpty ? nil : makeRelay(for: member)
    let hold = state.withLock { state -> PlainMembers.Hold? in
      guard var hold = state.plainMembers[member]?.hold else { return nil }
      if let relay {
        hold.relay = relay
        hold.dependencies = dependencies
        state.plainMembers[member]?.stage = .held(hold)
        state.schedule.suspectCycle()
      }
      return hold
    }
    guard let hold else { return }
    if let relay {
      relay.wait(for: dependencies)
      return searchForSuspectedCycleSoon()
    }
    hold.queue.isSuspended = true
    hold.gate.start()
    // A member that was cancelled may have finished meanwhile.
    if state.withLock({ $0.plainMembers[member] != nil }) { becameReady(member) }
  }

  func start(plain member: Operation) {
    if !member.isReady, !member.isFinished {
      wait(again: member)
      return releaseSlot()
    }
    guard let (hold, isOnCycle) = state.withLock({ $0.plainMembers.start(member) }) else { return releaseSlot() }
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

  /// The member has a new dependency, or overrides `isReady`.
  private func wait(again member: Operation) {
    if member.unfinishedDependencies.isEmpty {
      let refusals = state.withLock { state in
        defer { state.plainMembers[member]?.refusals += 1 }
        return state.plainMembers[member]?.refusals ?? 0
      }
      let delay = Duration.milliseconds(1 << min(refusals, GroupEngine.maximumDelayExponent))
      ClockTimer().start(after: delay, on: ContinuousClock()) { [weak self] in self?.becameReady(member) }
      return
    }
    let queue = state.withLock { state in
      state.schedule.suspectCycle()
      return state.plainMembers[member]?.hold?.queue
    }
    if let queue { hold(member, in: queue) } else { hold(member) }
  }

  /// - Parameter trace: The trace that recorded the member's start. Another trace may have been attached since.
  private func plainMemberDidFinish(_ member: Operation, _ trace: OperationTrace?) {
    (trace ?? self.trace(of: member))?.send(.ended(member))
    let (end, error) = state.withLock { $0.plainMembers.remove(member) }
    guard let end else { return }
    end.hold?.stopWaiting()
    member.forgetDependencies()
    let holdsSlot = if case .started = end.stage { true } else { false }
    let takenNext = holdsSlot && GroupRunner.isAboutToTake(from: self)
    let finished = FinishedMember(operation: member, index: end.index, error: error)
    self.finished(finished, failed: error != nil, holdsSlot: holdsSlot, takenNext: takenNext)
  }

  private func trace(of member: Operation) -> OperationTrace? {
    state.withLock { $0.schedule.life.group }?.trace?.trace(of: member)
  }
}

extension Operation {
  /// Makes a cancelled operation finish that is in no queue.
  func startCancelled() {
    if let own = self as? AsyncOperation {
      _ = own.startAsMember(by: nil)
    } else {
      if isReady { start() } else { OperationQueue().addOperation(self) }
      if isFinished { forgetDependencies() }
    }
  }

  /// Removes the dependencies of a plain operation that has finished, perhaps before them. When a dependency finishes
  /// on Linux, Foundation uses a pointer to the operation, even if it has been released. Before the end of the
  /// operation, Foundation would count fewer than zero dependencies.
  func forgetDependencies() { removeDependencies(dependencies) }

  /// Cancels the operation, which does not wait for its dependencies any more. On Linux, plain operations on a cycle
  /// that finish at once would deadlock, because each locks itself and then its dependents.
  func cancelAsMember() {
    if !(self is AsyncOperation), !isFinished { removeDependencies(unfinishedDependencies) }
    cancel()
  }

  private static let removalLock = NSRecursiveLock()

  /// On Linux, `removeDependency` locks the dependency and then this operation. Two operations that wait for each other
  /// would deadlock. The lock is recursive, because Foundation reads `isReady`, which a subclass can override.
  func removeDependencies(_ operations: [Operation]) {
    if operations.isEmpty { return }
    Operation.removalLock.withLock { for operation in operations { removeDependency(operation) } }
  }
}
