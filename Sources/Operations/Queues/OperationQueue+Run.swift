public import Foundation

extension OperationQueue {
  /// Adds an operation and waits for its end, without holding a thread.
  ///
  /// Cancelling the task cancels the operation, and the call returns when the operation has finished. An operation that
  /// is cancelled by other means ends the call, too.
  ///
  /// - Throws: What ``AsyncOperation/completed()`` throws.
  public func run<O: AsyncOperation>(_ operation: O) async throws {
    try await run(operation) { addOperation(operation) }
  }

  /// Waits for the end of an operation that `add` adds. Cancelling the task cancels it.
  func run(_ operation: AsyncOperation, adding add: () -> Void) async throws {
    try await withTaskCancellationHandler {
      add()
      try await operation.completed()
    } onCancel: {
      operation.cancel()
    }
  }

  /// Adds an operation and waits for its value, without holding a thread.
  ///
  /// - Throws: What ``AsyncOperation/completed()`` throws.
  @discardableResult
  public func run<O: OutputOperation>(_ operation: O) async throws -> O.Output {
    try await run(operation as AsyncOperation)
    return try operation.output()
  }

  /// Adds an operation and all of the toolkit's that it waits for, and waits for the last one's end.
  ///
  /// Cancelling the task cancels the last one; the others run to their end, for others may wait for them.
  ///
  /// - Throws: What ``AsyncOperation/completed()`` throws for the last one.
  public func run<O: AsyncOperation>(graphEndingIn last: O) async throws {
    try await run(last) { addGraph(endingIn: last) }
  }

  /// Adds an operation and all of the toolkit's that it waits for, and waits for the last one's value.
  ///
  /// - Throws: What ``AsyncOperation/completed()`` throws for the last one.
  @discardableResult
  public func run<O: OutputOperation>(graphEndingIn last: O) async throws -> O.Output {
    try await run(graphEndingIn: last as AsyncOperation)
    return try last.output()
  }
}

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
