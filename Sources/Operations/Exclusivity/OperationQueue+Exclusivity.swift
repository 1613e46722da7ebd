public import Foundation

extension OperationQueue {
  /// Adds an operation that executes only while it holds all of `keys`: no other operation under one of them executes
  /// at the same time, in whatever queue, group or thread.
  ///
  /// ```swift
  /// queue.addOperation(alert, exclusive: "alert")
  /// queue.addOperation(transfer, exclusive: "account 1", "account 2")
  /// ```
  ///
  /// An operation asks for its keys when everything it waits for has finished; at once, if that is so already. So those
  /// that wait for nothing execute in the order they were added, and one may wait for another that is added later under
  /// the same key. Waiting for a key takes no slot of the queue and no thread. Several keys are granted together or not
  /// at all, in whatever order they are named, and nobody waits for ever while others come and go.
  ///
  /// A key is free again when its holder has finished, whatever way it did: for those who wait when its observers have
  /// heard of the end, for a newcomer at once. A holder that is cancelled keeps it until then, also if its queue is
  /// suspended or full; one that is cancelled while it waits gives its place up at once.
  ///
  /// A **plain Foundation operation** cannot tell as much. It waits for a gate, which shows in its `dependencies`; that
  /// it was cancelled is noticed when it finishes; a dependency that is added to it after this call is not waited for
  /// before it asks; and what it has it keeps while it waits for a slot. One of ours waits for dependencies that are
  /// added until it has its keys, and gives them back while it waits for a slot that a group has whose member wants
  /// them.
  ///
  /// - Parameters:
  ///   - operation: Of any kind, in no queue and no group, and not started.
  ///   - keys: What it is to hold. Without any it is just added.
  ///   - policy: What it does if one of the keys is taken, or waited for, when it asks.
  ///   - domain: Where the keys mean something.
  /// - Returns: False if the operation was turned away at once. Its errors are complete then; it finishes without a
  ///   slot of the queue, in which it is not.
  /// - Important: What executes must not wait for an operation that wants a key which it holds itself, or which
  ///   somebody has who waits behind it: for its keys, or for a slot of its queue. Members of a group may: they go
  ///   first. Only if members of two groups ask for keys that the other group holds, the later one is cancelled with
  ///   ``OperationError/Code/waitCycle``: let the groups ask for all of their keys.
  @discardableResult
  public func addOperation(
    _ operation: Operation,
    exclusive keys: ExclusivityKey...,
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) -> Bool {
    addOperation(operation, exclusive: keys, policy: policy, in: domain)
  }

  /// The same for keys that are only known when the program runs.
  @discardableResult
  public func addOperation(
    _ operation: Operation,
    exclusive keys: [ExclusivityKey],
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) -> Bool {
    let request = ExclusivityRequest(keys, for: operation, policy: policy, domain: domain, of: self)
    let isAdded = (operation as? AsyncOperation).map { add($0, request) } ?? add(operation, request)
    // It need not wait for a slot of the queue, which the holder of the key may have.
    if !isAdded { operation.finishUnexecuted() }
    return isAdded
  }

  private func add(_ operation: AsyncOperation, _ request: ExclusivityRequest) -> Bool {
    operation.claim(for: self)
    operation.require(request)
    operation.permitAdmission()
    if request.wasRefused { return false }
    addClaimed(operation)
    return true
  }

  private func add(_ operation: Operation, _ request: ExclusivityRequest) -> Bool {
    guard let gate = request.gate, !operation.isCancelled else {
      addOperation(operation)
      return true
    }
    let waitedFor = operation.unfinishedDependencies
    if waitedFor.isEmpty { request.operationAsks() }
    if request.wasRefused { return false }
    // It is not to start before it is let in.
    if !request.isHolding { operation.addDependency(gate) }
    addOperation(operation)
    gate.unlock()
    request.watch(operation, waitingFor: waitedFor)
    return true
  }

  /// Adds an operation that executes only while it holds all of `keys`, and waits for its end, without holding a
  /// thread.
  ///
  /// - Throws: What ``AsyncOperation/completed()`` throws; ``OperationError/Code/excluded`` if the operation was
  ///   dropped.
  public func run<O: AsyncOperation>(
    _ operation: O,
    exclusive keys: ExclusivityKey...,
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) async throws {
    try await run(operation, exclusive: keys, policy: policy, in: domain)
  }

  /// Adds an operation that executes only while it holds all of `keys`, and waits for its value, without holding a
  /// thread.
  ///
  /// - Throws: What ``AsyncOperation/completed()`` throws; ``OperationError/Code/excluded`` if the operation was
  ///   dropped.
  @discardableResult
  public func run<O: OutputOperation>(
    _ operation: O,
    exclusive keys: ExclusivityKey...,
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) async throws -> O.Output {
    try await run(operation, exclusive: keys, policy: policy, in: domain)
  }

  /// The same for keys that are only known when the program runs.
  public func run<O: AsyncOperation>(
    _ operation: O,
    exclusive keys: [ExclusivityKey],
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) async throws {
    try await run(operation) { addOperation(operation, exclusive: keys, policy: policy, in: domain) }
  }

  /// The same for keys that are only known when the program runs.
  @discardableResult
  public func run<O: OutputOperation>(
    _ operation: O,
    exclusive keys: [ExclusivityKey],
    policy: ExclusivityPolicy = .wait,
    in domain: ExclusivityDomain = .shared
  ) async throws -> O.Output {
    try await run(operation as AsyncOperation, exclusive: keys, policy: policy, in: domain)
    return try operation.output()
  }
}
