import Foundation

extension AsyncOperation {
  // MARK: What Foundation is told

  /// Gives Foundation the gate before it asks, so that `addOperation` need not.
  func prepareForQueue() {
    if let gate = core.withLock({ $0.ledger.makeGate() }) { super.addDependency(gate) }
  }

  /// Sees to it that no wake-up is lost, after something that may have made Foundation note an outdated answer: the
  /// operation has been enqueued, or a gate been given to it.
  func lookAgain() {
    let isDue = core.withLock { core in
      core.lifecycle.phase == .pending && core.ledger.lookAgain(isCancelled: core.lifecycle.isCancelled)
    }
    // A cancelled operation that Foundation does not hold for ready yet is about to be cancelled in its books, too.
    if isDue, super.isReady { nudge() }
  }

  /// Makes Foundation look again at an operation that is ready.
  ///
  /// Adding a finished operation as a dependency does that, and changes nothing. It never shows in `dependencies`.
  func nudge() {
    AsyncOperation.nudging.withValue(self) { super.addDependency(AsyncOperation.finishedOperation) }
  }

  /// The operation at which the current thread makes Foundation look.
  private static let nudging = ThreadLocal<AsyncOperation>()

  /// Whether Foundation asks because this thread makes it.
  var isNudging: Bool { AsyncOperation.nudging.current === self }

  private static let finishedOperation = {
    let operation = Operation()
    operation.start()
    return operation
  }()

  func addDependency(_ dependency: DependencyLedger.Dependency) {
    let added = core.withLock { core -> (gate: Operation?, supervisor: OperationSupervisor?, asks: Bool)? in
      guard core.lifecycle.phase == .pending else { return nil }
      return (core.ledger.add(dependency), core.supervisor, core.ledger.permit == .requested)
    }
    guard let added else {
      misuse(
        "\(quotedName) has been started and can no longer wait for \(dependency.operation.quotedName). Add "
          + "dependencies before the operation is added to a queue or a group."
      )
    }
    if let gate = added.gate {
      super.addDependency(gate)
      lookAgain()
    }
    if added.asks { postponePermit() }
    added.supervisor?.memberGainedDependency(self)
  }

  /// The operation whose gate the current thread is opening.
  private static let opening = ThreadLocal<AsyncOperation>()

  /// Whether Foundation asks because this thread opens the gate.
  var isOpeningGate: Bool { AsyncOperation.opening.current === self }

  /// Lets Foundation know that nothing is waited for any more.
  func open(_ gate: Operation) {
    AsyncOperation.opening.withValue(self) { gate.start() }
    let (nudges, waiters, supervisor) = core.withLock { $0.gateDidOpen() }
    if nudges { nudge() }
    for waiter in waiters { waiter() }
    supervisor?.memberIsReady(self)
  }

  /// Waits, in the middle of `start()`, for the thread that is opening the gate: a few of its instructions.
  func awaitGate() {
    let opened = DispatchSemaphore(value: 0)
    let isOpen = core.withLock { core in
      if core.ledger.isOpeningGate { core.gateWaiters.append { opened.signal() } }
      return !core.ledger.isOpeningGate
    }
    if !isOpen { opened.wait() }
  }

  // MARK: What dependencies tell

  /// A dependency has finished, or is not waited for any more.
  func dependencyDidFinish(count: Int = 1) {
    changeCount { $0.countDown(by: count) }
  }

  /// Changes the count of what is waited for, and does what that leads to.
  func changeCount(_ change: (inout DependencyLedger) -> DependencyLedger.CountAction) {
    let (action, supervisor, trace) = core.withLock { core in
      let action = change(&core.ledger)
      return (action, core.supervisorToTell(after: action), core.trace)
    }
    switch action {
    case .keepWaiting, .ignore: return
    case .ask: askForPermit()
    case .becomeReady(let gate):
      trace?.operationIsReady()
      if let gate { open(gate) } else { supervisor?.memberIsReady(self) }
    }
  }

  /// Lets go of what an operation waited for, without recursion down a long chain: `dependencies` must be the last
  /// reference to them that the caller holds.
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
  var unfinishedDependencies: [Operation] { dependencies.filter { !$0.isFinished && !($0 is PlainMemberGate) } }

  /// The name, or the type's for an operation without one.
  var displayName: String {
    if let name, !name.isEmpty { return name }
    return String(describing: type(of: self))
  }

  /// The name as sentences quote it.
  var quotedName: String { "“\(displayName)”" }

  func refuseSelfDependency(_ operation: Operation) {
    if operation === self {
      misuse("\(quotedName) cannot wait for itself: it would never start. Make it depend on another operation.")
    }
  }
}

extension Collection where Element: Operation {
  /// The names of the first few, and how many more there are.
  var quotedNames: String {
    let names = prefix(8).map(\.quotedName).joined(separator: ", ")
    return count > 8 ? names + " and \(count - 8) others" : names
  }
}
