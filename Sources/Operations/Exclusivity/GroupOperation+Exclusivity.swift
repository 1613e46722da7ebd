public import Foundation

extension GroupOperation {
  /// Adds a member that executes only while it holds all of `keys`.
  ///
  /// As with a queue, but members ask once their group has begun. A member is let in if a group around it, however far
  /// out, holds the key, and members of such a group exclude each other as others do.
  ///
  /// - Returns: False if the operation was dropped at once, which it can only be in a group that has begun. Its error
  ///   is one of the group's then.
  @discardableResult
  public final func addOperation(
    _ operation: Operation,
    exclusive keys: ExclusivityKey...,
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) -> Bool {
    addOperation(operation, exclusive: keys, policy: policy, in: domain)
  }

  /// The same for keys that are only known when the program runs.
  @discardableResult
  public final func addOperation(
    _ operation: Operation,
    exclusive keys: [ExclusivityKey],
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) -> Bool {
    let request = ExclusivityRequest(keys, for: operation, policy: policy, domain: domain, inside: self)
    if let own = operation as? AsyncOperation { add(own, request) } else { add(operation, request) }
    return !request.wasRefused
  }

  private func add(_ operation: AsyncOperation, _ request: ExclusivityRequest) {
    operation.require(request)
    addOperation(operation)
    whenBegun { hasBegun in
      if hasBegun { operation.permitAdmission() } else { operation.forgoAdmission() }
    }
  }

  private func add(_ operation: Operation, _ request: ExclusivityRequest) {
    let waitedFor = operation.unfinishedDependencies
    guard let gate = request.gate, !operation.isCancelled else { return addOperation(operation) }
    operation.addDependency(gate)
    addOperation(operation)
    whenBegun { hasBegun in
      if hasBegun {
        request.watch(operation, waitingFor: waitedFor)
        if waitedFor.isEmpty { request.operationAsks() }
      } else {
        gate.unlock()
      }
      gate.unlock()
    }
  }
}
