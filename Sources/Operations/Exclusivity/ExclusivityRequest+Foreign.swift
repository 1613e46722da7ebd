import Foundation

/// What an operation of the toolkit tells by itself has to be watched for with a plain one.
extension ExclusivityRequest {
  /// Asks when all of `operations` have finished: now, if there are none.
  func ask(after operations: [Operation]) {
    if operations.isEmpty { operationAsks() } else { FinishRelay { self.operationAsks() }.wait(for: operations) }
  }

  /// Gives the keys back when the operation has finished.
  func watch(_ operation: Operation) {
    FinishRelay {
      self.operationDidFinish()
      // It was cancelled while it waited for the gate, which is not to tell it any more.
      operation.forgetUnfinishedDependencies()
    }.wait(for: [operation])
  }
}

extension Operation {
  var unfinishedDependencies: [Operation] { dependencies.filter { !$0.isFinished } }
}
