import Foundation

extension OperationCore {
  /// What the caller must do when an operation waits for something else than before.
  enum WaitAction {
    case none
    case requestTurn(KeyRequest)
    case withdrawTurn(KeyRequest, request: Int)
    /// The operation is ready. The caller opens the gate, and reports it open.
    case open(gate: Operation)
    case notify(GroupEngine?, number: Int?, isCalled: Bool, hasSlot: Bool)
    case notifyOfCancellation(GroupEngine, wasNotReady: Bool)
    /// The private operation of another one is ready, or was cancelled before.
    case startInside
    case resume(OperationPause)
    /// A started operation has its keys.
    case prepareInputs
  }

  mutating func add(_ dependency: DependencyLedger.Dependency) -> WaitAction {
    ledger.add(dependency)
    let hadTurn = lifecycle.phase == .pending(.turn) || lifecycle.phase == .pending(.slot)
    if lifecycle.phase != .pending(.groupStart) { lifecycle.wait(for: .dependencies) }
    if hadTurn { membership?.slot = .none }
    guard hadTurn, let turn else { return .none }
    return .withdrawTurn(turn, request: membership?.requests ?? 0)
  }

  mutating func countDown(by count: Int) -> WaitAction {
    guard ledger.countDown(by: count), lifecycle.phase == .pending(.dependencies) else { return .none }
    return waitForTurn()
  }

  /// The group of the member has started or, if nil, has been released. Has no effect on a member of another group.
  mutating func groupDidStart(_ engine: GroupEngine?) -> WaitAction {
    guard lifecycle.phase == .pending(.groupStart), self.engine === engine else { return .none }
    lifecycle.wait(for: .dependencies)
    return ledger.isWaiting ? .none : waitForTurn()
  }

  /// Lets an operation with keys wait its turn, unless it still waits for its dependencies.
  mutating func requestTurn() -> WaitAction {
    guard lifecycle.phase == .pending(.slot), turn != nil, !lifecycle.isCancelled else { return .none }
    return waitForTurn()
  }

  private mutating func waitForTurn() -> WaitAction {
    since = .now
    if case .none = place { return becomeReady() }
    guard let turn, !lifecycle.isCancelled else { return becomeReady() }
    return request(turn)
  }

  private mutating func request(_ turn: KeyRequest) -> WaitAction {
    lifecycle.wait(for: .turn)
    membership?.requests += 1
    return .requestTurn(turn)
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
    let (number, hasSlot) = (membership?.number, membership?.slot == .withKeys)
    return .notify(engine, number: number, isCalled: turn != nil, hasSlot: hasSlot)
  }

  mutating func turnHasCome(holdingKeys: Bool, request: Int) -> WaitAction {
    if holdingKeys, membership != nil { return memberHasKeys(request) }
    switch lifecycle.phase {
    case .pending(.turn): return becomeReady()
    // It was called before, and the call was withdrawn.
    case .pending(.slot) where membership != nil, .paused(.slot) where membership != nil: return readinessNotice
    case .suspended(.turn) where holdingKeys: return .prepareInputs
    case .paused(.turn) where holdingKeys: return resumeAfterPause(of: .turn)
    case .paused(.turn) where engine != nil:
      lifecycle.wait(for: .slot)
      return readinessNotice
    default: return .none
    }
  }

  /// A call that came late may have made the member wait for a slot.
  private mutating func memberHasKeys(_ request: Int) -> WaitAction {
    switch lifecycle.phase {
    // The thread that requested the turn was late.
    case .pending(.dependencies): return turn.map { .withdrawTurn($0, request: request) } ?? .none
    case .pending(.turn), .pending(.slot), .paused(.turn), .paused(.slot):
      guard request == membership?.requests, membership?.slot != .withKeys, !lifecycle.isCancelled else { return .none }
      membership?.slot = .withKeys
      if lifecycle.phase == .pending(.turn) { return becomeReady() }
      lifecycle.wait(for: .slot)
      return readinessNotice
    default: return .none
    }
  }

  /// A paused operation takes its keys again, and a member needs a slot.
  mutating func delayIsOver() -> WaitAction {
    guard lifecycle.phase == .paused(.delay) else { return .none }
    if let turn { return request(turn) }
    guard engine != nil else { return resumeAfterPause(of: .delay) }
    lifecycle.wait(for: .slot)
    return readinessNotice
  }

  mutating func resumeAfterPause(of wait: OperationLifecycle.Wait) -> WaitAction {
    guard lifecycle.resume(after: wait), let pause = extras?.pause.take() else { return .none }
    return .resume(pause)
  }

  mutating func gateDidOpen() -> (nudges: Bool, waiters: [Waiter], action: WaitAction) {
    let nudges = bridge.gateDidOpen(isWaiting: isBlocked)
    if bridge.isOpening { return (nudges, [], .none) }
    return (nudges, exchange(&gateWaiters, with: []), readinessNotice)
  }
}
