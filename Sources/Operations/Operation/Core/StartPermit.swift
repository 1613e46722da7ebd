import Foundation

/// The permission that an operation needs to execute once its dependencies have finished.
///
/// The base class grants it at once. Mutual exclusion, a higher layer, overrides it. All calls are made without a lock
/// held.
class StartPermit: @unchecked Sendable {
  /// Requests the permit for an operation in a queue whose dependencies have finished.
  ///
  /// - Returns: Whether the operation can become ready. Otherwise ``AsyncOperation/permitIsGranted()`` is called later.
  func request() -> Bool { true }

  /// Withdraws the request, because the operation has a new unfinished dependency. It requests the permit again later.
  ///
  /// - Returns: Whether the request was withdrawn. False if the permit has been granted.
  func withdraw() -> Bool { false }

  /// Acquires the permit, just before the operation executes.
  ///
  /// - Parameter isStarted: Whether the operation has been started. Otherwise a group is about to start it.
  /// - Returns: Whether the operation can execute. Otherwise it waits without a thread. A started operation continues
  ///   with ``whenGranted(_:)``, any other one with ``AsyncOperation/permitIsGranted()``.
  func acquire(isStarted: Bool) -> Bool { true }

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
  /// execute, so it needs no permit. Must be called before the operation is enqueued.
  ///
  /// - Returns: Whether the operation must be enqueued. Otherwise it was refused, as under the policy `.drop`.
  func requestPermit() -> Bool {
    let (gate, action) = core.withLock { core -> (Operation?, DependencyLedger.CountAction) in
      guard core.extras?.permit != nil, !core.lifecycle.isCancelled else { return (nil, .ignore) }
      return core.ledger.requirePermit()
    }
    if let gate { super.addDependency(gate) }
    guard case .requestPermit = action else { return true }
    sendPermitRequest()
    return !isCancelled || core.withLock { $0.lifecycle.failures.isEmpty }
  }

  func sendPermitRequest() {
    guard let permit = core.withLock({ $0.extras?.permit }) else { return }
    if permit.request() { return grantPermit() }
    noteWaitForPermit()
    // A dependency added before the request was sent could not withdraw it.
    if core.withLock({ $0.ledger.permit == .requested && $0.ledger.remaining > 1 }) { postponePermit() }
  }

  /// Makes the operation ready in its queue or group, because its permit was granted.
  func permitIsGranted() {
    let (supervisor, trace) = core.withLock { core in
      (core.ledger.permit == .notNeeded && core.ledger.isSatisfied ? core.takeReadiness() : nil, core.trace)
    }
    guard let supervisor else { return grantPermit() }
    trace?.send(.ready)
    supervisor.memberIsReady(self)
  }

  func noteWaitForPermit() {
    let trace = core.withLock { $0.lifecycle.isCancelled ? nil : $0.trace }
    trace?.send(.waitsForPermit)
  }

  private func grantPermit() { changeCount { $0.grantPermit() } }

  /// Withdraws the request for the permit, because the operation has a new dependency. The request is repeated when
  /// that dependency has finished.
  func postponePermit() {
    let permit = core.withLock { $0.extras?.permit }
    if permit?.withdraw() == true { changeCount { $0.postponePermit() } }
  }
}
