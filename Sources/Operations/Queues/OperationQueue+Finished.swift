public import Foundation

extension OperationQueue {
  /// Waits until the queue is empty, without holding a thread. What is added meanwhile is waited for, too.
  ///
  /// An operation leaves its queue in the moment in which it finishes, so its observers may not have been called yet.
  /// Where that matters wait for the operation itself.
  public func finished() async {
    while true {
      let operations = operations
      if operations.isEmpty { return }
      let unfinished = operations.filter { !$0.isFinished }
      // Finished ones leave the queue at any moment: their thread is just carrying it out.
      if unfinished.isEmpty { await Task.yield() }
      for operation in unfinished { await operation.finished() }
    }
  }
}
