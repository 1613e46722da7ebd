public import Foundation

extension OperationQueue {
  /// Adds an `AsyncOperation`.
  ///
  /// Unlike Foundation's method, it loses no wake-up on Linux if the last dependency finishes at this moment.
  ///
  /// - Precondition: The operation has not been started and is in no queue or group. The package cannot detect that
  ///   Foundation's own methods added the operation to a queue. In that case, Foundation traps with its own message.
  public func addOperation(_ operation: AsyncOperation) {
    if operation.takePlaceIfFree(in: self) { return enqueue(operation) }
    let hasPlace = operation.core.withLock { $0.queue === self && $0.lifecycle.phase.isPending }
    guard hasPlace, !operations.contains(where: { $0 === operation }) else { return operation.takePlace(in: self) }
    // An override of Foundation's `addOperation(_:)` has cast the operation and passed it to `super`. Foundation's
    // method for several operations does not call that override again.
    addOperations([operation], waitUntilFinished: false)
  }

  func enqueue(_ operation: AsyncOperation) {
    // A rejected operation finishes at once, because the holder of its key may occupy the slot that it would wait for.
    guard operation.prepareForQueue() else { return operation.startCancelled() }
    addOperation(operation as Operation)
    operation.wasAdded(withSlots: operationsWithSlots)
  }

  /// Adds several operations at once, without waiting. Unlike Foundation's method, it can be called in a task.
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
        own.takePlace(in: self)
      } else if operation.isExecuting || operation.isFinished {
        misuse(operation.cannotBeAdded(because: "has been started"))
      } else if !plain.insert(ObjectIdentifier(operation)).inserted {
        misuse(operation.cannotBeAdded(because: "is in this call"))
      }
    }
    enqueue(operations)
  }

  func enqueue(_ operations: [Operation]) {
    let operations = operations.filter { operation in
      guard let own = operation as? AsyncOperation, !own.prepareForQueue() else { return true }
      own.startCancelled()
      return false
    }
    addOperations(operations, waitUntilFinished: false)
    lazy var withSlots = operationsWithSlots
    for case let own as AsyncOperation in operations { own.wasAdded(withSlots: withSlots) }
  }

  /// Adds an operation, and every `AsyncOperation` that it depends on directly or indirectly, to this queue.
  ///
  /// Operations that are already in a queue or group, or have been started, stay where they are, and what only they
  /// depend on is not added. Several graphs can share operations. The dependencies of a group's members are added as well.
  ///
  /// Add plain Foundation operations separately, because the package cannot detect whether they are in a queue, nor
  /// whether Foundation's own methods added an `AsyncOperation` to another one: use this package's methods instead.
  public func addGraph(endingIn last: AsyncOperation) {
    let dependencies = freeDependencies(of: last).filter { $0.takePlaceIfFree(in: self) }
    let isNew = last.isFree && !operations.contains(where: { $0 === last }) && last.takePlaceIfFree(in: self)
    enqueue(dependencies + (isNew ? [last] : []))
  }

  /// Waits until the queue is empty or the waiting task is cancelled, without holding a thread.
  ///
  /// The wait includes operations that are added meanwhile. An operation leaves its queue when it finishes, possibly
  /// before its observers are notified. To wait for the observers, wait for the operation itself. To wait in a cancelled
  /// task, for example to shut down, call the method in a task of its own.
  public func finished() async {
    while !Task.isCancelled {
      let operations = operations
      let unfinished = operations.filter { !$0.isFinished }
      // The queue lists those that have expired until it starts them.
      if operations.allSatisfy({ ($0 as? AsyncOperation)?.core.withLock { $0.hasExpired } == true }) { return }
      // Other threads are removing the finished operations from the queue.
      if unfinished.isEmpty { await Task.yield() }
      for operation in unfinished { await operation.finished() }
    }
  }
}
