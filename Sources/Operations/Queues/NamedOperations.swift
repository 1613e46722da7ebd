public import Foundation

extension OperationQueue {
  /// Returns the waiting and executing operations of the queue that have this name, in the order of their addition.
  public func operations(named name: String) -> [Operation] { operations.filter { $0.name == name } }

  /// Cancels the operations of the queue that have this name, but no members of its groups with this name.
  ///
  /// - Returns: The number of operations that this call cancelled, without those that were cancelled before.
  @discardableResult
  public func cancelOperations(named name: String) -> Int { operations(named: name).cancelUnfinished() }

  /// Cancels the operations of the queue that wait, at any depth. Executing operations continue: see
  /// ``GroupOperation/cancelWaitingOperations()``.
  ///
  /// A cancelled operation leaves the queue when the queue has a slot for it.
  ///
  /// - Returns: The number of operations that this call cancelled, without those inside cancelled ones.
  @discardableResult
  public func cancelWaitingOperations() -> Int {
    let operations = operations
    let plain = operations.filter { !($0 is AsyncOperation) && !$0.isExecuting }
    return AsyncOperation.cancelWaiting(operations.compactMap { $0 as? AsyncOperation }) + plain.cancelUnfinished()
  }
}

extension GroupOperation {
  /// Returns the unfinished members that have this name, in the order in which they were added.
  public final func operations(named name: String) -> [Operation] { operations.filter { $0.name == name } }

  /// Cancels the members that have this name, but none inside other members.
  ///
  /// Members that are cancelled without an error are no failures of the group, which can be successful without them.
  ///
  /// - Returns: The number of members that this call cancelled. Members that were cancelled before do not count.
  @discardableResult
  public final func cancelOperations(named name: String) -> Int {
    AsyncOperation.cancelAll(engine.members.filter { $0.represented.name == name }, in: engine)
  }
}

extension [Operation] {
  fileprivate func cancelUnfinished() -> Int {
    let plain = filter { !($0 is AsyncOperation) && !$0.isCancelled && !$0.isFinished }
    for operation in plain { operation.cancel() }
    // The drains of a scheduler ignore it.
    return AsyncOperation.cancelAll(compactMap { $0 as? AsyncOperation }) + plain.count { $0.isCancelled }
  }
}

extension Operation {
  /// Sets the name and returns the operation: `let page = Download(url).named("page 3")`.
  ///
  /// Errors, reports and graphs use the name of an operation, or the name of its type if it has none.
  @discardableResult
  public func named(_ name: String) -> Self {
    self.name = name
    return self
  }
}
