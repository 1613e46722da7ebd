public import Foundation

extension OperationQueue {
  /// Adds an operation of the toolkit. Foundation's own, plus what it takes on Linux that no wake-up is lost if the last
  /// dependency finishes at this moment on another thread.
  ///
  /// - Precondition: The operation has not been started and is in no queue and no group.
  public func addOperation(_ operation: AsyncOperation) {
    operation.claimForQueue()
    let isWaiting = operation.prepareForQueue()
    addOperation(operation as Operation)
    if isWaiting { operation.nudge() }
  }

  /// Adds several operations at once, without waiting. Foundation's own cannot be called from asynchronous code.
  ///
  /// At once is cheaper than one by one: on Linux every addition looks at all that wait in the queue.
  public func addOperations(_ operations: [Operation]) {
    var waiting: [AsyncOperation] = []
    for case let operation as AsyncOperation in operations {
      operation.claimForQueue()
      if operation.prepareForQueue() { waiting.append(operation) }
    }
    addOperations(operations, waitUntilFinished: false)
    for operation in waiting { operation.nudge() }
  }
}
