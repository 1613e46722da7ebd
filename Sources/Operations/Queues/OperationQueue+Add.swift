public import Foundation

extension OperationQueue {
  /// Adds an operation of the toolkit. Foundation's own, plus what it takes on Linux that no wake-up is lost if the
  /// last dependency finishes at this moment on another thread.
  ///
  /// - Precondition: The operation has not been started and is in no queue and no group. If it was added to a queue by
  ///   Foundation's own methods, which the package cannot see, Foundation traps instead, with a message of its own.
  public func addOperation(_ operation: AsyncOperation) {
    operation.claim(for: self)
    addClaimed(operation)
  }

  func addClaimed(_ operation: AsyncOperation) {
    // One that is turned away at once does not wait for a slot, which the holder of its key may have.
    guard operation.requestPermit() else { return operation.finishUnexecuted() }
    operation.prepareForQueue()
    addOperation(operation as Operation)
    operation.lookAgain()
  }

  /// Adds several operations at once, without waiting. Foundation's own cannot be called from asynchronous code.
  ///
  /// At once is cheaper than one by one: on Linux every addition looks at all that wait in the queue.
  ///
  /// - Precondition: As for a single operation. The package cannot see that a plain Foundation operation is in a queue or a
  ///   group already: Foundation traps then.
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
      own.finishUnexecuted()
      return false
    }
    let own = operations.compactMap { $0 as? AsyncOperation }
    for operation in own { operation.prepareForQueue() }
    addOperations(operations, waitUntilFinished: false)
    for operation in own { operation.lookAgain() }
  }
}
