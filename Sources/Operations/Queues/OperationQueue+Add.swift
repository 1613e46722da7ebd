public import Foundation

extension OperationQueue {
  /// Adds an `AsyncOperation`.
  ///
  /// This is Foundation's method with one addition: on Linux, no wake-up is lost if the last dependency finishes at
  /// this moment on another thread.
  ///
  /// - Precondition: The operation has not been started and is in no queue or group. If it was added to a queue by
  ///   Foundation's own methods, which the package cannot detect, Foundation traps instead, with its own message.
  public func addOperation(_ operation: AsyncOperation) {
    operation.claim(for: self)
    addClaimed(operation)
  }

  func addClaimed(_ operation: AsyncOperation) {
    // An operation that is rejected at once does not wait for a slot, which the holder of its key may occupy.
    guard operation.requestPermit() else { return operation.startCancelled() }
    operation.prepareForQueue()
    addOperation(operation as Operation)
    operation.lookAgain()
  }

  /// Adds several operations at once, without waiting. Foundation's own method cannot be called from asynchronous
  /// code.
  ///
  /// Adding operations at once costs less than adding them one by one, because on Linux every addition walks all
  /// waiting operations of the queue.
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
      guard let own = operation as? AsyncOperation, !own.requestPermit() else { return true }
      own.startCancelled()
      return false
    }
    let own = operations.compactMap { $0 as? AsyncOperation }
    for operation in own { operation.prepareForQueue() }
    addOperations(operations, waitUntilFinished: false)
    for operation in own { operation.lookAgain() }
  }
}

extension OperationQueue {
  /// Adds an operation, and every `AsyncOperation` that it depends on directly or indirectly, to this queue.
  ///
  /// Operations that are already in a queue or group, or have been started, stay where they are. Several graphs can
  /// share operations. The dependencies of a group's members are added as well.
  ///
  /// Plain Foundation operations are not added, because the package cannot detect where they are: add them
  /// separately. It also cannot detect that an `AsyncOperation` was added to another queue by Foundation's own
  /// methods: use this package's methods instead.
  public func addGraph(endingIn last: AsyncOperation) {
    let enqueued = Set(operations.map { ObjectIdentifier($0) })
    let graph = OperationWalk.freeGraph(endingIn: last).filter { !enqueued.contains(ObjectIdentifier($0)) }
    // Another thread may have added some of them a moment ago, such as a login that two graphs wait for.
    addClaimed(graph.filter { $0.claimIfFree(for: self) })
  }
}
