public import Foundation

extension OperationQueue {
  /// Adds an operation of the toolkit. Foundation's own, plus what it takes on Linux that no wake-up is lost if the
  /// last dependency finishes at this moment on another thread.
  ///
  /// - Precondition: The operation has not been started and is in no queue and no group.
  public func addOperation(_ operation: AsyncOperation) {
    operation.claim(for: self)
    addClaimed(operation)
  }

  func addClaimed(_ operation: AsyncOperation) {
    operation.prepareForQueue()
    addOperation(operation as Operation)
    operation.lookAgain()
  }

  /// Adds several operations at once, without waiting. Foundation's own cannot be called from asynchronous code.
  ///
  /// At once is cheaper than one by one: on Linux every addition looks at all that wait in the queue.
  public func addOperations(_ operations: [Operation]) {
    for case let operation as AsyncOperation in operations { operation.claim(for: self) }
    addClaimed(operations)
  }

  func addClaimed(_ operations: [Operation]) {
    let own = operations.compactMap { $0 as? AsyncOperation }
    for operation in own { operation.prepareForQueue() }
    addOperations(operations, waitUntilFinished: false)
    for operation in own { operation.lookAgain() }
  }
}
