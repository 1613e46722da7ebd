import Foundation

/// The queue of a group's runners. It has no limit, because the group counts its members itself.
final class GroupQueue: OperationQueue, ContinuingQueue, @unchecked Sendable {
  func continueOperation(_ body: @escaping @Sendable () -> Void) {
    let operation = BlockOperation(block: body)
    operation.qualityOfService = qualityOfService
    addOperation(operation)
  }
}
