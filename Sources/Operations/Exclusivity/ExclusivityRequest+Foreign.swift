import Foundation

/// What an operation of the toolkit tells by itself has to be watched for with a plain one.
extension ExclusivityRequest {
  /// Asks when all of `waitedFor` have finished, if there are any; and gives the keys back when the operation has.
  func watch(_ operation: Operation, waitingFor waitedFor: [Operation]) {
    let relay = waitedFor.isEmpty ? nil : FinishRelay { self.operationAsks() }
    FinishRelay {
      self.operationDidFinish()
      // It may have been cancelled while it waited: for others, or for the gate, which is not to tell it any more.
      relay?.stop(waitingFor: waitedFor)
      operation.forgetDependencies()
    }.wait(for: [operation])
    relay?.wait(for: waitedFor)
  }
}

extension Operation {
  var unfinishedDependencies: [Operation] { dependencies.filter { !$0.isFinished && !($0 is PlainMemberGate) } }
}
