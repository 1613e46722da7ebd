import Foundation

extension AsyncOperation {
  /// Requests the operation's permit, if it needs one, when everything else it waits for has finished. To be called
  /// before the operation is enqueued. One that has been cancelled does not execute, and needs none.
  ///
  /// - Returns: Whether the operation is to be enqueued. Otherwise it has been turned away at once.
  func requestPermit() -> Bool {
    let (gate, action) = core.withLock { core -> (Operation?, DependencyLedger.CountAction) in
      guard core.extras?.permit != nil, !core.lifecycle.isCancelled else { return (nil, .ignore) }
      return core.ledger.requirePermit()
    }
    if let gate { super.addDependency(gate) }
    guard case .ask = action else { return true }
    askForPermit()
    return !isCancelled || core.withLock { $0.lifecycle.failures.isEmpty }
  }

  func askForPermit() {
    guard let permit = core.withLock({ $0.extras?.permit }) else { return }
    if permit.request() { return grantPermit() }
    // A dependency that came before the permit was requested could not take it back.
    if core.withLock({ $0.ledger.permit == .requested && $0.ledger.remaining > 1 }) { postponePermit() }
  }

  /// The operation may begin: it becomes ready, in its queue or in its group.
  func permitIsGranted() {
    let (supervisor, trace) = core.withLock { core in
      (core.ledger.permit == .notNeeded && core.ledger.isSatisfied ? core.takeReadiness() : nil, core.trace)
    }
    guard let supervisor else { return grantPermit() }
    trace?.operationIsReady()
    supervisor.memberIsReady(self)
  }

  private func grantPermit() { changeCount { $0.grantPermit() } }

  /// The operation waits for something again: it requests its permit when that has finished.
  func postponePermit() {
    let permit = core.withLock { $0.extras?.permit }
    if permit?.withdraw() == true { changeCount { $0.postponePermit() } }
  }
}
