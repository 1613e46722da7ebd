import Foundation

extension AsyncOperation {
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
