import Foundation

/// The permission that an operation needs to execute once its dependencies have finished.
///
/// The base class grants it at once. Mutual exclusion, a higher layer, overrides it. All calls are made without a lock
/// held.
class StartPermit: @unchecked Sendable {
  /// Requests the permit for an operation whose dependencies have finished. A repeated request has no effect.
  ///
  /// - Returns: Whether the operation can become ready. Otherwise ``AsyncOperation/permitIsGranted()`` is called later.
  func request() -> Bool { true }

  /// Withdraws the request, or gives back the permit, because the operation has a new unfinished dependency. Has no
  /// effect if the operation has acquired the permit, or waits for the permit after its start.
  func withdraw() {}

  /// Acquires the permit, just before the operation executes.
  ///
  /// - Parameter waits: Whether an operation without the permit stays started until ``whenGranted(_:)`` calls back.
  ///   Otherwise it waits as after ``request()``.
  /// - Returns: Whether the operation can execute.
  func acquire(waits: Bool) -> Bool { true }

  /// Calls `resumption` when a started operation has acquired the permit, unless the operation ends before.
  func whenGranted(_ resumption: @escaping @Sendable () -> Void) {}

  /// Responds to the cancellation of the operation.
  func operationWasCancelled() {}

  /// Gives back the permit, because the operation has finished, or has been released without finishing.
  func operationIsOver() {}

  /// The name of the permit, as part of a message.
  var goal: String { "its permit" }
}

extension AsyncOperation {
  /// Makes the operation wait for its permit, if it needs one, after its dependencies. A cancelled operation does not
  /// execute, so it needs no permit. Must be called before the operation is enqueued, or when its group has started.
  ///
  /// - Parameter supervisor: The engine of the group. The call has no effect on an operation that is not its member.
  /// - Returns: Whether the operation must be enqueued. Otherwise it was refused, as under the policy `.drop`.
  @discardableResult
  func requestPermit(as supervisor: OperationSupervisor? = nil) -> Bool {
    let (gate, action) = core.withLock { core -> (Operation?, DependencyLedger.CountAction) in
      guard core.extras?.permit != nil, core.supervisor === supervisor, !core.lifecycle.isCancelled else {
        return (nil, .ignore)
      }
      return core.ledger.requirePermit()
    }
    if let gate { super.addDependency(gate) }
    guard case .requestPermit = action else { return true }
    updatePermit()
    return !isCancelled || core.withLock { $0.lifecycle.failures.isEmpty }
  }

  /// Requests or withdraws the permit, as the ledger requires.
  ///
  /// Called after each change of the ledger that affects the permit. Calls on several threads may carry out such
  /// changes in another order, so each call repeats until the ledger has not changed meanwhile.
  func updatePermit() {
    guard let permit = core.withLock({ $0.extras?.permit }) else { return }
    var state = core.withLock { $0.ledger.permit }
    while true {
      switch state {
      case .notNeeded, .granted: return
      case .withheld, .due: permit.withdraw()
      case .requested: if permit.request() { permitIsGranted() } else { noteWaitForPermit() }
      }
      let old = state
      state = core.withLock { $0.ledger.permit }
      if state == old { return }
    }
  }

  /// Makes the operation ready, because its permit was granted.
  func permitIsGranted() { changeCount { $0.grantPermit() } }

  /// Releases the slot of a member whose permit was given to another operation before the group started the member.
  /// The member becomes ready again when its permit is granted.
  func awaitPermitAgain() {
    guard let starter = core.withLock({ $0.awaitPermitAgain() }) else { return finishUnexecuted() }
    starter.memberDidPause()
    updatePermit()
  }

  func noteWaitForPermit() {
    let trace = core.withLock { $0.lifecycle.isCancelled ? nil : $0.trace }
    trace?.send(.waitsForPermit)
  }
}
