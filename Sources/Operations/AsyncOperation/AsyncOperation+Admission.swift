import Foundation

/// How an operation is let in.
extension AsyncOperation {
  /// Makes the operation wait for an admission, for which it asks when everything else it waits for has finished, but
  /// not before ``permitAdmission()``. Not if it has been cancelled: then it does not execute anyway.
  func require(_ admission: OperationAdmission) {
    let gate = core.withLock { core -> Operation? in
      if core.lifecycle.isCancelled { return nil }
      core.makeExtras().admission = admission
      return core.ledger.requireAdmission()
    }
    if let gate { super.addDependency(gate) }
  }

  /// The operation has come to where it is to run.
  func permitAdmission() { changeCount { $0.permitAdmission() } }

  func askForAdmission() {
    core.withLock { $0.extras?.admission }?.operationAsks()
    // Whoever has added a dependency while it was on its way there could not take it back.
    if core.withLock({ $0.ledger.admission == .asked && $0.ledger.remaining > 1 }) { postponeAdmission() }
  }

  /// Lets the operation in.
  func admit() { changeCount { $0.admit() } }

  /// The operation waits for something again: it asks when that has finished.
  func postponeAdmission() {
    let admission = core.withLock { $0.extras?.admission }
    if admission?.operationPostpones() == true { changeCount { $0.postponeAdmission() } }
  }

  /// The operation is not to ask any more: it is free, and may be put elsewhere.
  func forgoAdmission() {
    let admission = core.withLock { $0.extras?.exchange(\.admission, nil) }
    withExtendedLifetime(admission) { changeCount { $0.forgoAdmission() } }
  }
}
