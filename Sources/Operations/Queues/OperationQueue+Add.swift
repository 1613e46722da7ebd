public import Foundation

extension OperationQueue {
  /// Adds an `AsyncOperation`.
  ///
  /// Unlike Foundation's method, this method loses no wake-up on Linux if the last dependency finishes at this moment
  /// on another thread.
  ///
  /// - Precondition: The operation has not been started and is in no queue or group. The package cannot detect that
  ///   Foundation's own methods added the operation to a queue. In that case, Foundation traps with its own message.
  public func addOperation(_ operation: AsyncOperation) {
    if operation.claimIfFree(for: self) { return addClaimed(operation) }
    let isClaimed = operation.core.withLock { $0.queue === self && $0.lifecycle.phase.isPending }
    guard isClaimed, !operations.contains(where: { $0 === operation }) else { return operation.claim(for: self) }
    // An override of Foundation's `addOperation(_:)` has cast the operation and passed it to `super`. Foundation's
    // method for several operations does not call that override again.
    addOperations([operation], waitUntilFinished: false)
  }

  func addClaimed(_ operation: AsyncOperation) {
    // A rejected operation finishes at once, because the holder of its key may occupy the slot that it would wait for.
    guard operation.prepareForQueue() else { return operation.startCancelled() }
    addOperation(operation as Operation)
    operation.recheckReadiness()
    operation.startWaitLimit()
  }

  /// Adds several operations at once, without waiting. Unlike Foundation's method, this method can be called from
  /// asynchronous code.
  ///
  /// On Linux, this costs less than adding the operations one by one, because Foundation walks all waiting operations
  /// of the queue at every addition.
  ///
  /// - Precondition: As for a single operation. The package cannot detect that a plain Foundation operation is
  ///   already in a queue or group. Foundation traps in that case.
  public func addOperations(_ operations: [Operation]) {
    var plain: Set<ObjectIdentifier> = []
    for operation in operations {
      if let own = operation as? AsyncOperation {
        own.claim(for: self)
      } else if operation.isExecuting || operation.isFinished {
        misuse(operation.cannotBeAdded(because: "has been started"))
      } else if !plain.insert(ObjectIdentifier(operation)).inserted {
        misuse(operation.cannotBeAdded(because: "is in this call"))
      }
    }
    addClaimed(operations)
  }

  func addClaimed(_ operations: [Operation]) {
    let operations = operations.filter { operation in
      guard let own = operation as? AsyncOperation, !own.prepareForQueue() else { return true }
      own.startCancelled()
      return false
    }
    addOperations(operations, waitUntilFinished: false)
    for case let own as AsyncOperation in operations {
      own.recheckReadiness()
      own.startWaitLimit()
    }
  }

  /// Adds an operation, and every `AsyncOperation` that it depends on directly or indirectly, to this queue.
  ///
  /// Operations that are already in a queue or group, or have been started, stay where they are, and what only they
  /// depend on is not added. Several graphs can share operations. The dependencies of a group's members are added as well.
  ///
  /// Add plain Foundation operations separately, because the package cannot detect whether they are in a queue. The
  /// package also cannot detect that Foundation's own methods added an `AsyncOperation` to another queue: use this
  /// package's methods instead.
  public func addGraph(endingIn last: AsyncOperation) {
    let dependencies = claimDependencies(of: last)
    let isNew = last.isFree && !operations.contains(where: { $0 === last }) && last.claimIfFree(for: self)
    addClaimed(dependencies + (isNew ? [last] : []))
  }

  /// Adds an operation, which must be free, and every free `AsyncOperation` that it depends on, as part of some work.
  func addWithDependencies(_ operation: AsyncOperation, inside caller: (any EnclosingWork)? = nil) {
    let hasDependencies = operation.core.withLock { !$0.ledger.dependencies.isEmpty }
    let mayWait = hasDependencies || (operation as? GroupOperation)?.engine.membersMayWait == true
    let dependencies = mayWait ? claimDependencies(of: operation) : []
    operation.claim(for: self)
    for case let own as AsyncOperation in dependencies + [operation] { own.belong(to: caller) }
    if dependencies.isEmpty { addClaimed(operation) } else { addClaimed(dependencies + [operation]) }
  }

  private func claimDependencies(of last: AsyncOperation) -> [Operation] {
    // Cancelled operations do not wait, but other operations may wait for their dependencies.
    let snapshot = WaitSnapshot(of: [last], scope: .free)
    let free = snapshot.nodes.indices.reversed().filter { !snapshot.isStart($0) }
      .compactMap { snapshot.nodes[$0].operation as? AsyncOperation }.filter { $0 !== last && $0.isFree }
    if free.isEmpty { return [] }
    let enqueued = Set(operations.map { ObjectIdentifier($0) })
    // Another thread may have just added an operation that two graphs share.
    return free.filter { !enqueued.contains(ObjectIdentifier($0)) && $0.claimIfFree(for: self) }
  }
}
