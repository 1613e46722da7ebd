import Foundation

extension OperationCore {
  /// What the caller must do when an operation waits for something else than before.
  enum WaitAction {
    case none
    case enterWaitQueues(KeyRequest)
    case leaveWaitQueues(KeyRequest)
    /// The operation is ready. The caller opens the gate, and reports it open.
    case open(gate: Operation)
    case notify(GroupEngine?, number: Int?, KeyRequest?)
    case notifyOfCancellation(GroupEngine, wasNotReady: Bool)
    /// The private operation of another one is ready, or was cancelled before.
    case startInside
    case resume(OperationPause)
    /// A started operation has its keys.
    case prepareInputs
  }

  mutating func add(_ dependency: DependencyLedger.Dependency) -> WaitAction {
    ledger.add(dependency)
    let mayBeInWaitQueues = lifecycle.phase == .pending(.keys) || lifecycle.phase == .pending(.slot)
    if lifecycle.phase != .pending(.groupStart) { lifecycle.wait(for: .dependencies) }
    guard mayBeInWaitQueues, let keys else { return .none }
    return .leaveWaitQueues(keys)
  }

  mutating func countDown(by count: Int) -> WaitAction {
    guard ledger.countDown(by: count), lifecycle.phase == .pending(.dependencies) else { return .none }
    return waitForKeysOrSlot()
  }

  /// The group of the member has started or, if nil, has been released. Has no effect on a member of another group.
  mutating func groupDidStart(_ engine: GroupEngine?) -> WaitAction {
    guard lifecycle.phase == .pending(.groupStart), self.engine === engine else { return .none }
    lifecycle.wait(for: .dependencies)
    return ledger.isWaiting ? .none : waitForKeysOrSlot()
  }

  /// Lets an operation of a queue that has keys wait for them, unless it still waits for its dependencies.
  mutating func waitForKeysInQueue() -> WaitAction {
    guard lifecycle.phase == .pending(.slot), keys != nil, !lifecycle.isCancelled else { return .none }
    return waitForKeysOrSlot()
  }

  private mutating func waitForKeysOrSlot() -> WaitAction {
    since = .now
    if case .none = place { return becomeReady() }
    // A member waits for its keys and a slot at the same time.
    guard let keys, membership == nil, !lifecycle.isCancelled else { return becomeReady() }
    lifecycle.wait(for: .keys)
    return .enterWaitQueues(keys)
  }

  /// The last of several threads that open gates notifies the group.
  private mutating func becomeReady() -> WaitAction {
    lifecycle.wait(for: .slot)
    if let gate = bridge.takeGate() { return .open(gate: gate) }
    return readinessNotice
  }

  private var readinessNotice: WaitAction {
    if !isSatisfied || lifecycle.isCancelled { return .none }
    if case .inside = place { return .startInside }
    return .notify(engine, number: membership?.number, keys)
  }

  /// A member that gave back its slot, because it could not be started, may have become ready meanwhile.
  func requestSlotAgain() -> WaitAction { lifecycle.phase.wait == .slot ? readinessNotice : .none }

  /// The keys of an operation that is no member are free, or it has them.
  mutating func keysAreFree(areHeld: Bool) -> WaitAction {
    switch lifecycle.phase {
    case .pending(.keys): becomeReady()
    case .suspended(.keys) where areHeld: .prepareInputs
    case .paused(.keys) where areHeld: resume(after: .keys)
    case .pending, .suspended, .preparing, .executing, .paused, .skipped, .ending, .finished: .none
    }
  }

  /// A paused operation takes its keys again, and a member needs a slot.
  mutating func delayIsOver() -> WaitAction {
    guard lifecycle.phase == .paused(.delay) else { return .none }
    if engine != nil {
      lifecycle.wait(for: .slot)
      return readinessNotice
    }
    guard let keys else { return resume(after: .delay) }
    lifecycle.wait(for: .keys)
    return .enterWaitQueues(keys)
  }

  private mutating func resume(after wait: OperationLifecycle.Wait) -> WaitAction {
    endPause(after: wait).map { .resume($0) } ?? .none
  }

  mutating func endPause(after wait: OperationLifecycle.Wait) -> OperationPause? {
    guard lifecycle.resume(after: wait) else { return nil }
    guard let pause = extras?.pause.take() else { misuse("A paused operation keeps its pause; this one has none.") }
    return pause
  }

  mutating func gateDidOpen() -> (nudges: Bool, waiters: [Waiter], action: WaitAction) {
    let nudges = bridge.gateDidOpen(isWaiting: isBlocked)
    if bridge.isOpening { return (nudges, [], .none) }
    return (nudges, exchange(&bridge.waiters, with: []), readinessNotice)
  }
}
