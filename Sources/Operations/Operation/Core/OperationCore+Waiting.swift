import Foundation

extension OperationCore {
  /// What the caller must do when an operation waits for something else than before.
  enum WaitAction {
    case none
    case requestTurn(any OperationTurn)
    /// The operation of a queue ends a pause, in which it has kept its slot.
    case takeTurn(any OperationTurn)
    case withdrawTurn(any OperationTurn)
    /// The operation is ready. The caller opens the gate, and reports it open.
    case open(gate: Operation)
    /// The operation is ready. The caller notifies the group. A returning member was started before, in vain.
    case notify(OperationSupervisor?, isReturning: Bool)
    case resume(OperationPause)
    /// A started operation has its keys.
    case prepareInputs
  }

  mutating func add(_ dependency: DependencyLedger.Dependency) -> WaitAction {
    ledger.add(dependency)
    let hadTurn = lifecycle.phase == .pending(.turn) || lifecycle.phase == .pending(.slot)
    if lifecycle.phase != .pending(.groupStart) { lifecycle.wait(for: .dependencies) }
    return hadTurn ? turn.map { .withdrawTurn($0) } ?? .none : .none
  }

  mutating func countDown(by count: Int) -> WaitAction {
    guard ledger.countDown(by: count), lifecycle.phase == .pending(.dependencies) else { return .none }
    return waitForTurn()
  }

  mutating func endCounting() -> WaitAction { countDown(by: ledger.remaining) }

  /// The group of the member has started or, if nil, has been released. Has no effect on a member of another group.
  mutating func groupDidStart(_ supervisor: OperationSupervisor?) -> WaitAction {
    guard lifecycle.phase == .pending(.groupStart), self.supervisor === supervisor else { return .none }
    lifecycle.wait(for: .dependencies)
    return ledger.isWaiting ? .none : waitForTurn()
  }

  /// Lets an operation with keys wait its turn, unless it still waits for its dependencies.
  mutating func requestTurn() -> WaitAction {
    guard lifecycle.phase == .pending(.slot), turn != nil, !lifecycle.isCancelled else { return .none }
    return waitForTurn()
  }

  private mutating func waitForTurn() -> WaitAction {
    if case .none = place { return becomeReady() }
    guard let turn, !lifecycle.isCancelled else { return becomeReady() }
    lifecycle.wait(for: .turn)
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
    return .notify(supervisor, isReturning: lifecycle.phase.isPending && starter != nil)
  }

  /// The operation has been called and, unless it waits for a slot, holds its keys.
  mutating func turnHasCome(holdingKeys: Bool) -> WaitAction {
    switch lifecycle.phase {
    case .pending(.turn): return becomeReady()
    case .suspended(.turn) where holdingKeys: return .prepareInputs
    case .paused(.turn) where holdingKeys: return resumeAfterPause(of: .turn)
    case .paused(.turn) where supervisor != nil:
      lifecycle.wait(for: .slot)
      return readinessNotice
    default: return .none
    }
  }

  /// A paused operation takes its keys again, and a member needs a slot.
  mutating func delayIsOver() -> WaitAction {
    guard lifecycle.phase == .paused(.delay) else { return .none }
    if let turn {
      lifecycle.wait(for: .turn)
      return supervisor == nil ? .takeTurn(turn) : .requestTurn(turn)
    }
    guard supervisor != nil else { return resumeAfterPause(of: .delay) }
    lifecycle.wait(for: .slot)
    return readinessNotice
  }

  mutating func resumeAfterPause(of wait: OperationLifecycle.Wait) -> WaitAction {
    guard lifecycle.resume(after: wait), let pause = extras?.exchange(\.pause, nil) else { return .none }
    return .resume(pause)
  }

  mutating func gateDidOpen() -> (nudges: Bool, waiters: [@Sendable () -> Void], action: WaitAction) {
    let nudges = bridge.gateDidOpen(isWaiting: isBlocked)
    if bridge.isOpening { return (nudges, [], .none) }
    defer { gateWaiters = [] }
    return (nudges, gateWaiters, readinessNotice)
  }
}
