import Foundation

/// An `OperationQueue` that can run a part of an operation while that operation occupies a slot.
protocol ContinuingQueue: OperationQueue {
  /// Runs `body` later, where `execute()` of the queue's operations runs.
  func continueOperation(_ body: @escaping @Sendable () -> Void)
}
