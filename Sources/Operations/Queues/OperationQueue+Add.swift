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

extension OperationQueue {
  /// Adds an operation and all operations of the toolkit that it waits for, directly or not, to this queue.
  ///
  /// Those that are in a queue or a group already, or have been started, stay where they are; several graphs may share
  /// some. Plain Foundation operations stay out, for nobody can tell where they are: add them yourself. Nor can it be
  /// told of ours if they were added to another queue by Foundation's own verbs: use these. What the members of a group
  /// wait for comes along, too.
  public func addGraph(endingIn last: AsyncOperation) {
    let enqueued = Set(operations.map { ObjectIdentifier($0) })
    let graph = OperationWalk.freeGraph(endingIn: last).filter { !enqueued.contains(ObjectIdentifier($0)) }
    // Somebody else may have taken some of them a moment ago: a login that two graphs wait for.
    addClaimed(graph.filter { $0.claimIfFree(for: self) })
  }
}
