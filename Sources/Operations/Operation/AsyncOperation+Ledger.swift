import Foundation

extension AsyncOperation {
  // MARK: Notifying Foundation

  /// Adds the gate before Foundation checks readiness, so that `addOperation` need not add it.
  func prepareForQueue() {
    if let gate = core.withLock({ $0.ledger.makeGate() }) { super.addDependency(gate) }
  }

  /// Checks readiness again, so that no wake-up is lost. Called after an event that may have made Foundation record an
  /// outdated answer: the operation was enqueued, or a gate was added to it.
  func recheckReadiness() {
    let isDue = core.withLock { core in
      core.lifecycle.phase == .pending && core.ledger.recheckReadiness(isCancelled: core.lifecycle.isCancelled)
    }
    // If Foundation does not consider a cancelled operation ready yet, `super.cancel()` is about to be called.
    if isDue, super.isReady { nudge() }
  }

  /// Makes Foundation check the readiness of an operation again.
  ///
  /// Adding a finished operation as a dependency triggers the check and has no other effect. ``dependencies`` does not
  /// list the finished operation.
  func nudge() {
    AsyncOperation.nudging.withValue(self) { super.addDependency(AsyncOperation.finishedOperation) }
  }

  /// The operation that the current thread is nudging.
  private static let nudging = ThreadLocal<AsyncOperation>()

  /// Whether Foundation checks readiness because this thread is nudging the operation.
  var isNudging: Bool { AsyncOperation.nudging.current === self }

  private static let finishedOperation = {
    let operation = Operation()
    operation.start()
    return operation
  }()

  func addDependency(_ dependency: DependencyLedger.Dependency) {
    let added = core.withLock { core -> (gate: Operation?, supervisor: OperationSupervisor?, isPermitDue: Bool)? in
      guard core.lifecycle.phase == .pending else { return nil }
      return (core.ledger.add(dependency), core.supervisor, core.ledger.permit == .due)
    }
    guard let added else {
      misuse(
        "\(quotedName) has been started and can no longer wait for \(dependency.operation.quotedName). Add "
          + "dependencies before the operation is added to a queue or a group."
      )
    }
    if let gate = added.gate {
      super.addDependency(gate)
      recheckReadiness()
    }
    if added.isPermitDue { updatePermit() }
    added.supervisor?.memberGainedDependency(self)
  }

  /// The operation whose gate the current thread is opening.
  private static let opening = ThreadLocal<AsyncOperation>()

  /// Whether Foundation checks readiness because this thread is opening the gate.
  var isOpeningGate: Bool { AsyncOperation.opening.current === self }

  /// Opens the gate, which notifies Foundation that all dependencies have finished.
  func open(_ gate: Operation) {
    AsyncOperation.opening.withValue(self) { gate.start() }
    let (nudges, waiters, supervisor) = core.withLock { $0.gateDidOpen() }
    if nudges { nudge() }
    for waiter in waiters { waiter() }
    supervisor?.memberIsReady(self)
  }

  /// Blocks the thread in `start()` until another thread has opened the gate, a few instructions later.
  func awaitGate() {
    let opened = DispatchSemaphore(value: 0)
    let isOpen = core.withLock { core in
      if core.ledger.isOpeningGate { core.gateWaiters.append { opened.signal() } }
      return !core.ledger.isOpeningGate
    }
    if !isOpen { opened.wait() }
  }

  // MARK: Counting dependencies

  /// Counts down dependencies that have finished or were removed.
  func dependencyDidFinish(count: Int = 1) {
    changeCount { $0.countDown(by: count) }
  }

  /// Changes the count of unfinished dependencies, and carries out the resulting action.
  func changeCount(_ change: (inout DependencyLedger) -> DependencyLedger.CountAction) {
    let (action, supervisor, trace) = core.withLock { core in
      let action = change(&core.ledger)
      return (action, core.supervisorToNotify(after: action), core.trace)
    }
    switch action {
    case .keepWaiting, .ignore: return
    case .requestPermit: updatePermit()
    case .becomeReady(let gate):
      trace?.send(.ready)
      if let gate { open(gate) } else { supervisor?.memberIsReady(self) }
    }
  }

  /// Releases the dependencies of an operation without recursing down a long chain. The caller must hold no other
  /// reference to them.
  static func release(_ dependencies: consuming [DependencyLedger.Dependency?]) {
    var operations: [AnyObject] = []
    while let slot = dependencies.popLast() {
      guard let dependency = slot else { continue }
      if case .foreign(let operation, let relay) = dependency { relay.stop(waitingFor: [operation]) }
      operations.append(dependency.operation)
    }
    Trampoline.release(consume operations)
  }
}

extension Operation {
  /// The dependencies that have not finished, except for the ``PlainMemberGate`` of a group.
  var unfinishedDependencies: [Operation] { dependencies.filter { !$0.isFinished && !($0 is PlainMemberGate) } }

  func refuseSelfDependency(_ operation: Operation) {
    if operation === self {
      misuse("\(quotedName) cannot wait for itself: it would never start. Make it depend on another operation.")
    }
  }
}
