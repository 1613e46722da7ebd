public import Foundation

extension Operation {
  /// Waits until the operation has finished, without holding a thread. Never throws, and does not start anything.
  ///
  /// An ``AsyncOperation``'s observers have heard of the end by then. Cancelling the waiting task changes nothing: the
  /// wait ends with the operation.
  public func finished() async {
    await withCheckedContinuation { continuation in
      if let operation = self as? AsyncOperation {
        operation.whenSettled { continuation.resume() }
      } else if isFinished {
        continuation.resume()
      } else {
        FinishRelay { continuation.resume() }.wait(for: [self])
      }
    }
  }
}
