import Foundation

extension AsyncOperation {
  // MARK: What Foundation is told

  /// Gives Foundation the gate before it asks, so that `addOperation` need not.
  ///
  /// - Returns: Whether something is waited for.
  func prepareForQueue() -> Bool {
    let (isWaiting, gate) = core.withLock { core in
      (core.ledger.remaining > 0 && !core.lifecycle.isCancelled, core.ledger.makeGate())
    }
    if let gate { super.addDependency(gate) }
    return isWaiting
  }

  /// Makes Foundation look again at an operation that was enqueued while its last dependency finished.
  ///
  /// Adding a finished operation as a dependency does that, and changes nothing. It never shows in `dependencies`.
  func nudge() { super.addDependency(AsyncOperation.finishedOperation) }

  private static let finishedOperation = {
    let operation = Operation()
    operation.start()
    return operation
  }()

  func addDependency(_ dependency: DependencyLedger.Dependency) {
    let (isTooLate, gate, supervisor) = core.withLock { core in
      guard core.lifecycle.phase == .pending else { return (true, nil as Operation?, nil as OperationSupervisor?) }
      return (false, core.ledger.add(dependency), core.supervisor)
    }
    if isTooLate {
      misuse(
        "“\(displayName)” has been started and can no longer wait for “\(dependency.operation.displayName)”. Add "
          + "dependencies before the operation is added to a queue or a group."
      )
    }
    if let gate { super.addDependency(gate) }
    supervisor?.memberGainedDependency(self)
  }

  // MARK: What dependencies tell

  /// A dependency has finished, or is not waited for any more.
  ///
  /// Foundation hears of it first, then the group: a member is started only after its gate, if it has one, is open.
  func dependencyDidFinish(count: Int = 1) {
    let (action, supervisor) = core.withLock { core in
      let action = core.ledger.countDown(by: count)
      return (action, core.supervisorToTell(after: action))
    }
    switch action {
    case .keepWaiting, .ignore: return
    case .becomeReady(let gate):
      gate?.start()
      supervisor?.memberIsReady(self)
    }
  }

  /// Lets go of what an operation waited for, without recursion down a long chain: `dependencies` must be the last
  /// reference to them that the caller holds.
  static func release(_ dependencies: consuming [DependencyLedger.Dependency]) {
    var operations: [AnyObject] = []
    while let dependency = dependencies.popLast() {
      if case .foreign(let operation, let relay) = dependency { relay.stop(waitingFor: [operation]) }
      operations.append(dependency.operation)
    }
    Trampoline.release(consume operations)
  }

  var unfinishedDependencyNames: String {
    dependencies.filter { !$0.isFinished }.map { "“\($0.displayName)”" }.joined(separator: ", ")
  }
}

extension Operation {
  /// The name, or the type's for an operation without one.
  var displayName: String {
    if let name, !name.isEmpty { return name }
    return String(describing: type(of: self))
  }

  func refuseSelfDependency(_ operation: Operation) {
    if operation === self {
      misuse("“\(displayName)” cannot wait for itself: it would never start. Make it depend on another operation.")
    }
  }
}
