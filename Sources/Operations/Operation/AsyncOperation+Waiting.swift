import Foundation

extension AsyncOperation {
  // MARK: Adding

  /// Traps if the operation is already in a queue or a group, or has been started.
  func claim(for queue: OperationQueue?) {
    switch take(for: queue) {
    case .claimed: return
    case .refused(let obstacle): misuse(cannotBeAdded(because: obstacle))
    case .repeated: misuse(cannotBeAdded(because: "is in a group"))
    }
  }

  func claimIfFree(for queue: OperationQueue? = nil) -> Bool {
    if case .claimed = take(for: queue) { return true }
    return false
  }

  private func take(for queue: OperationQueue?) -> OperationCore.ClaimAction {
    let (action, trace) = core.withLock { ($0.claim(for: queue), $0.trace) }
    guard case .claimed = action else { return action }
    let followers = queue.map { QueueFollowers.of($0) } ?? []
    for follower in followers { follower.queueDidClaim(self) }
    (followers.isEmpty ? trace : self.trace)?.send(.enqueued)
    return action
  }

  /// As far as the package can detect.
  var isFree: Bool {
    core.withLock { core in
      if case .none = core.place { return core.lifecycle.phase == .pending }
      return false
    }
  }

  /// Requests the permit, and then adds the gate before Foundation checks readiness, because a permit that is granted
  /// at once saves the gate. Returns false if the operation was refused, as under the policy `.drop`.
  func prepareForQueue() -> Bool {
    let (gate, update) = core.withLock { core in
      let (gate, update) = core.requirePermit(for: nil)
      return (gate ?? (update == nil ? core.makeGateIfWaiting() : nil), update)
    }
    if let gate { super.addDependency(gate) }
    guard let update else { return true }
    updatePermit(update)
    let (isRefused, newGate) = core.withLock { core in
      let isRefused = core.lifecycle.isCancelled && core.lifecycle.hasFailed
      return (isRefused, isRefused ? nil : core.makeGateIfWaiting())
    }
    if let newGate { super.addDependency(newGate) }
    return !isRefused
  }

  // MARK: Counting dependencies

  func addDependency(_ dependency: DependencyLedger.Dependency) {
    let added = core.withLock { core -> (Operation?, OperationSupervisor?, OperationCore.PermitUpdate?)? in
      guard core.lifecycle.phase == .pending else { return nil }
      core.ledger.add(dependency)
      return (core.bridge.makeGateIfRead(), core.supervisor, core.ledger.permit == .due ? core.permitUpdate : nil)
    }
    guard let (gate, supervisor, update) = added else {
      misuse(
        "\(quotedName) has been started and can no longer wait for \(dependency.operation.quotedName). Add "
          + "dependencies before the operation is added to a queue or a group."
      )
    }
    if let gate {
      super.addDependency(gate)
      recheckReadiness()
    }
    updatePermit(update)
    supervisor?.memberGainedDependency(self)
  }

  func dependencyDidFinish(count: Int = 1) { changeCount { $0.countDown(by: count) } }

  /// Returns the state of the permit after the change.
  @discardableResult
  func changeCount(
    _ change: (inout DependencyLedger) -> DependencyLedger.CountAction?
  ) -> OperationCore.PermitUpdate? {
    let (action, gate, notice, trace, update) = core.withLock { core in
      let action = change(&core.ledger)
      let gate = action == .becomeReady ? core.bridge.takeGate() : nil
      // A member with a gate starts after the gate has been opened, because Foundation is notified first.
      let notice = action == .becomeReady && gate == nil ? core.takeNotice() : nil
      return (action, gate, notice, core.trace, core.permitUpdate)
    }
    switch action {
    case nil: break
    case .requestPermit: updatePermit(update)
    case .becomeReady:
      trace?.send(.ready)
      if let gate { open(gate) } else { send(notice) }
    }
    return update
  }

  private func send(_ notice: OperationCore.ReadinessNotice?) {
    if let (supervisor, isReturning) = notice { supervisor.memberIsReady(self, isReturning: isReturning) }
  }

  // MARK: The permit

  func requestPermit(for supervisor: OperationSupervisor) {
    let (gate, update) = core.withLock { $0.requirePermit(for: supervisor) }
    if let gate { super.addDependency(gate) }
    updatePermit(update)
  }

  /// Requests or withdraws the permit, as the ledger requires after a change. Several threads may carry out their
  /// changes in another order, so each call repeats until the ledger has not changed meanwhile.
  func updatePermit(_ first: OperationCore.PermitUpdate?) {
    var next = first
    while let (permit, state, supervisor, queue) = next {
      switch state {
      case .notNeeded, .granted: return
      case .withheld, .due:
        permit.withdraw()
        next = core.withLock { $0.permitUpdate }
      case .requested:
        next = permit.request(from: supervisor, queue) ? permitIsGranted() : noteWaitForPermit()
      }
      if next?.state == state { return }
    }
  }

  @discardableResult
  func permitIsGranted() -> OperationCore.PermitUpdate? { changeCount { $0.grantPermit() } }

  /// Releases the slot of a member whose permit was given to another operation before the member started.
  func awaitPermitAgain() {
    guard let (starter, update) = core.withLock({ $0.awaitPermitAgain() }) else { return finishUnexecuted() }
    starter?.memberDidPause()
    updatePermit(update)
  }

  /// Returns the state of the permit.
  @discardableResult
  func noteWaitForPermit() -> OperationCore.PermitUpdate? {
    let (update, trace) = core.withLock { ($0.permitUpdate, $0.lifecycle.isCancelled ? nil : $0.trace) }
    trace?.send(.waitsForPermit)
    return update
  }

  // MARK: Notifying Foundation

  private static let opening = ThreadLocal<AsyncOperation>()
  private static let nudging = ThreadLocal<AsyncOperation>()

  private static let finishedOperation = {
    let operation = Operation()
    operation.start()
    return operation
  }()

  /// The answer to `isReady`, which may be read as part of an event on this thread.
  var readiness: FoundationBridge.Readiness {
    core.withLock { core in
      if core.lifecycle.isCancelled || core.lifecycle.phase != .pending { return .leftToFoundation }
      return core.bridge.check(
        isWaiting: core.ledger.isWaiting,
        isOpener: AsyncOperation.opening.current === self,
        isNudge: AsyncOperation.nudging.current === self
      )
    }
  }

  func open(_ gate: Operation) {
    AsyncOperation.opening.withValue(self) { gate.start() }
    let (nudges, waiters, notice) = core.withLock { $0.gateDidOpen() }
    if nudges { nudge() }
    for waiter in waiters { waiter() }
    send(notice)
  }

  /// Checks again whether Foundation must be nudged: the operation was enqueued, or a gate was added to it.
  func recheckReadiness() {
    let isDue = core.withLock { core in
      let (isWaiting, isCancelled) = (core.ledger.isWaiting, core.lifecycle.isCancelled)
      return core.lifecycle.phase == .pending && core.bridge.recheck(isWaiting: isWaiting, isCancelled: isCancelled)
    }
    // If Foundation does not consider a cancelled operation ready yet, `super.cancel()` is about to be called.
    if isDue, super.isReady { nudge() }
  }

  /// Makes Foundation check readiness again. Adding a finished operation as a dependency has no other effect.
  private func nudge() {
    AsyncOperation.nudging.withValue(self) { super.addDependency(AsyncOperation.finishedOperation) }
  }

  /// Blocks the thread in `start()` until another thread has opened the gate, a few instructions later.
  func awaitGate() {
    let opened = DispatchSemaphore(value: 0)
    let isOpening = core.withLock { core in
      if core.bridge.isOpening { core.gateWaiters.append { opened.signal() } }
      return core.bridge.isOpening
    }
    if isOpening { opened.wait() }
  }
}

extension Operation {
  /// Without the ``PlainMemberGate`` of a group.
  var unfinishedDependencies: [Operation] { dependencies.filter { !$0.isFinished && !($0 is PlainMemberGate) } }

  func refuseSelfDependency(_ operation: Operation) {
    if operation === self {
      misuse("\(quotedName) cannot wait for itself: it would never start. Make it depend on another operation.")
    }
  }

  func cannotBeAdded(because obstacle: String) -> String {
    "\(quotedName) \(obstacle) already and cannot be added. An operation runs once, in one place: make a new one."
  }
}
