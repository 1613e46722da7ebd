import Foundation

extension AsyncOperation {
  // MARK: Adding

  /// Traps if the operation is already in a queue or a group, or has been started.
  func takePlace(in queue: OperationQueue?) {
    if let obstacle = tryTakingPlace(in: queue) { misuse(cannotBeAdded(because: obstacle)) }
  }

  func takePlaceIfFree(in queue: OperationQueue? = nil) -> Bool { tryTakingPlace(in: queue) == nil }

  /// Takes the place, or returns the reason why the operation cannot be added.
  private func tryTakingPlace(in queue: OperationQueue?) -> String? {
    let (obstacle, trace) = core.withLock { ($0.takePlace(in: queue), $0.trace) }
    if let obstacle { return obstacle }
    let queueFollowers = queue.map { QueueFollowers.of($0) } ?? []
    for follow in queueFollowers { follow(self) }
    for follower in queueFollowers.isEmpty ? trace : self.trace { follower.noteEnqueuing() }
    return nil
  }

  /// As far as the package can detect.
  var isFree: Bool {
    core.withLock { core in if case .none = core.place { core.lifecycle.phase.isPending } else { false } }
  }

  /// Enters the wait queues of the keys. If the operation must wait, then adds the gate, before Foundation checks
  /// readiness. In this order, keys that are free at once need no gate. Returns false if the operation was refused, as under the policy `.drop`.
  func prepareForQueue() -> Bool {
    let (action, gate) = core.withLock { core -> (OperationCore.WaitAction, Operation?) in
      let action = core.waitForKeysInQueue()
      if case .none = action { return (action, core.makeGateIfWaiting()) }
      return (action, nil)
    }
    if let gate { super.addDependency(gate) }
    guard case .enterWaitQueues = action else { return true }
    continueWait(action)
    if core.withLock({ $0.lifecycle.isCancelled && $0.lifecycle.hasFailed }) { return false }
    if let gate = core.withLock({ $0.makeGateIfWaiting() }) { super.addDependency(gate) }
    return true
  }

  /// Makes up for what Foundation and others may have missed before the queue had the operation.
  func wasAdded(withSlots: @autoclosure () -> Set<ObjectIdentifier>?) {
    recheckReadiness()
    let (hasWaitLimit, isWaiting) = core.withLock { ($0.extras?.waitLimit != nil, $0.ledger.isWaiting) }
    if hasWaitLimit { startWaitLimit(withSlots: withSlots) }
    if isWaiting { watchIfAwaited() }
  }

  /// An operation in a queue that waits for a dependency may close a cycle, if another operation waits for it.
  private func watchIfAwaited() {
    let hasMembers = runsOthersInside
    let mayCloseCycle = core.withLock { core in
      core.queue != nil && core.ledger.isWaiting && (hasMembers || core.ledger.dependents?.isEmpty == false)
    }
    if mayCloseCycle { WaitWatch.watch(self) }
  }

  // MARK: Waiting

  func addDependencyIfPending(_ operation: Operation) -> Bool {
    let dependency =
      (operation as? AsyncOperation).map { DependencyLedger.Dependency.own($0) }
      ?? .foreign(operation, FinishRelay { [weak self] in self?.dependencyDidFinish() })
    let added = core.withLock { core -> (OperationCore.WaitAction, Operation?, GroupEngine?)? in
      guard core.lifecycle.phase.isPending else { return nil }
      return (core.add(dependency), core.bridge.makeGateIfRead(), core.engine)
    }
    guard let (action, gate, engine) = added else { return false }
    if let gate {
      super.addDependency(gate)
      recheckReadiness()
    }
    continueWait(action)
    var isWaitedFor = true
    switch dependency {
    case .own(let operation): isWaitedFor = operation.core.withLock { $0.ledger.add(dependent: self) }.isWaitedFor
    case .foreign(let operation, let relay): relay.wait(for: operation)
    }
    // From now on, a failure of the dependency reaches this operation. The group looks for an earlier one.
    if let engine { engine.memberGainedDependency(self) } else { watchIfAwaited() }
    if !isWaitedFor { dependencyDidFinish() }
    return true
  }

  func dependencyDidFinish(count: Int = 1) { changeWait { $0.countDown(by: count) } }

  func keysAreFree(areHeld: Bool) { changeWait { $0.keysAreFree(areHeld: areHeld) } }

  func changeWait(_ change: (inout OperationCore) -> OperationCore.WaitAction) {
    let (action, trace) = core.withLock { core in (change(&core), core.trace) }
    switch action {
    case .open, .notify, .startInside, .resume, .prepareInputs:
      for follower in trace { follower.noteTurn() }
    case .none, .enterWaitQueues, .leaveWaitQueues, .notifyOfCancellation: break
    }
    continueWait(action)
  }

  func continueWait(_ action: OperationCore.WaitAction) {
    switch action {
    case .none: break
    case .enterWaitQueues(let keys): enterWaitQueues(of: keys)
    case .leaveWaitQueues(let keys): leaveWaitQueues(of: keys)
    case .open(let gate): open(gate)
    case .notify(let engine, _, let keys?): engine?.enterWaitQueues(self, of: keys)
    case .notify(let engine, let number, nil): engine?.becameReady(self, number: number)
    case .notifyOfCancellation(let engine, let wasNotReady):
      engine.change { $0.wasCancelled(self, wasNotReady: wasNotReady) }
    // Avoids recursion, because the outer operation may finish, for which another operation may wait, and so on.
    case .startInside: Trampoline.run { [self] in _ = startOrResume(by: nil) }
    case .resume(let pause):
      let place = keepPlace()
      // Blocking work may hold every thread of the shared pool, but not those of the timers.
      if place.queue == nil { DueWork.shared.add([pause.resume]) } else { place.run(pause.resume) }
    case .prepareInputs:
      keepPlace().run { if self.core.withLock({ $0.lifecycle.resume(after: .keys) }) { self.prepareInputs() } }
    }
  }

  // MARK: Keys

  private func enterWaitQueues(of keys: KeyRequest) {
    switch keys.enterWaitQueues() {
    case .away, .waiting: noteKeyWait()
    case .called: keysAreFree(areHeld: false)
    case .holding, .replaced, .lending: keysAreFree(areHeld: true)
    }
  }

  /// Records whether the operation waits for its keys.
  func noteKeyWait() {
    let trace = core.withLock { core in core.lifecycle.isCancelled ? [] : core.trace }
    if trace.isEmpty { return }
    if shownPhase.wait == .keys { for follower in trace { follower.noteKeyWait() } }
    // Another thread may have recorded the end of the wait before.
    if shownPhase.wait != .keys { for follower in trace { follower.noteTurn() } }
  }

  /// Enters them again if another thread has requested that meanwhile.
  private func leaveWaitQueues(of keys: KeyRequest) {
    leaveKeys(keys, forGood: false, unlessHeld: true)
    if core.withLock({ $0.lifecycle.phase == .pending(.keys) }) { enterWaitQueues(of: keys) }
    changeWait { $0.requestSlotAgain() }
  }

  func leaveKeys(_ keys: KeyRequest, forGood: Bool, unlessHeld: Bool = false) {
    if let engine = core.withLock({ $0.engine }) {
      engine.leave(keys, of: self, forGood: forGood, unlessHeld: unlessHeld)
    } else {
      keys.leave(forGood: forGood, unlessHeld: unlessHeld)
    }
  }

  /// The phase for reports. A member waits for its keys and a slot at once: this is the keys if they are not free.
  var shownPhase: OperationLifecycle.Phase {
    let (phase, keys) = core.withLock { ($0.lifecycle.phase, $0.membership == nil ? nil : $0.keys) }
    guard phase.wait == .slot, let keys, keys.waitsForKeys else { return phase }
    return phase.isPending ? .pending(.keys) : .paused(.keys)
  }

  // MARK: Notifying Foundation

  private static let opening = ThreadLocal<AsyncOperation>()
  private static let nudging = ThreadLocal<AsyncOperation>()

  /// The answer to `isReady`, which may be read as part of an event on this thread.
  var readiness: FoundationBridge.Readiness {
    core.withLock { core in
      if core.lifecycle.isCancelled || !core.lifecycle.phase.isPending { return .leftToFoundation }
      return core.bridge.check(
        isWaiting: core.isBlocked,
        isOpener: AsyncOperation.opening.current === self,
        isNudge: AsyncOperation.nudging.current === self
      )
    }
  }

  func open(_ gate: Operation) {
    AsyncOperation.opening.withValue(self) { gate.start() }
    let (nudges, waiters, action) = core.withLock { $0.gateDidOpen() }
    if nudges { nudge() }
    for waiter in waiters { waiter() }
    continueWait(action)
  }

  /// Checks again whether Foundation must be nudged: the operation was enqueued, or a gate was added to it.
  func recheckReadiness() {
    let isDue = core.withLock { core in
      let (isWaiting, isCancelled) = (core.isBlocked, core.lifecycle.isCancelled)
      return core.lifecycle.phase.isPending && core.bridge.recheck(isWaiting: isWaiting, isCancelled: isCancelled)
    }
    // If Foundation does not consider a cancelled operation ready yet, `super.cancel()` is about to be called.
    if isDue, super.isReady { nudge() }
  }

  /// Makes Foundation check readiness again. Adding a finished operation as a dependency has no other effect. It is a
  /// new one each time, because Apple's reference does not define what adding a dependency twice does.
  private func nudge() {
    let finished = Operation()
    finished.start()
    AsyncOperation.nudging.withValue(self) { super.addDependency(finished) }
  }

  /// Blocks the thread in `start()` until another thread has opened the gate, a few instructions later.
  func awaitGate() {
    let opened = DispatchSemaphore(value: 0)
    let isOpening = core.withLock { core in
      if core.bridge.isOpening { core.bridge.waiters.append { opened.signal() } }
      return core.bridge.isOpening
    }
    if isOpening { opened.wait() }
  }
}

extension Operation {
  var unfinishedDependencies: [Operation] { dependencies.filter { !$0.isFinished } }

  func refuseSelfDependency(_ operation: Operation) {
    if operation === self {
      misuse("\(quotedName) cannot wait for itself: it would never start. Make it depend on another operation.")
    }
  }

  func cannotBeAdded(because obstacle: String) -> String {
    let group = asMember?.core.withLock { $0.outer }.map { " (\($0.quotedName))" } ?? ""
    return
      "\(quotedName) \(obstacle) already\(group) and cannot be added. An operation runs once, in one place: make a new one."
  }
}
