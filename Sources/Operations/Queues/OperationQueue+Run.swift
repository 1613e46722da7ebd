public import Foundation

extension OperationQueue {
  /// Adds an operation and waits until it has finished, without holding a thread.
  ///
  /// Cancelling the task cancels the operation. The call still waits until the operation has finished.
  ///
  /// - Throws: The error that ``AsyncOperation/completed()`` throws.
  public func run<O: AsyncOperation>(_ operation: O) async throws {
    try await run(operation) { addOperation(operation) }
  }

  /// Calls `add` to add the operation, and waits until the operation has finished. Cancelling the task cancels the
  /// operation.
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
  /// - Throws: The error that ``AsyncOperation/completed()`` throws.
  @discardableResult
  public func run<O: OutputOperation>(_ operation: O) async throws -> O.Output {
    try await run(operation as AsyncOperation)
    return try operation.output()
  }

  /// Adds an operation and every `AsyncOperation` that it depends on, and waits until the last one has finished.
  ///
  /// Cancelling the task cancels the last operation only, because other operations may wait for its dependencies.
  ///
  /// - Throws: The error that ``AsyncOperation/completed()`` throws for the last operation.
  public func run<O: AsyncOperation>(graphEndingIn last: O) async throws {
    try await run(last) { addGraph(endingIn: last) }
  }

  /// Adds an operation and every `AsyncOperation` that it depends on, and waits for the value of the last one.
  ///
  /// - Throws: The error that ``AsyncOperation/completed()`` throws for the last operation.
  @discardableResult
  public func run<O: OutputOperation>(graphEndingIn last: O) async throws -> O.Output {
    try await run(graphEndingIn: last as AsyncOperation)
    return try last.output()
  }
}

extension OperationQueue {
  /// Waits until the queue is empty, including operations that are added meanwhile, without holding a thread.
  ///
  /// An operation leaves its queue when it finishes, possibly before its observers are notified. To wait for the
  /// observers, wait for the operation itself.
  public func finished() async {
    while true {
      let operations = operations
      if operations.isEmpty { return }
      let unfinished = operations.filter { !$0.isFinished }
      // Other threads are removing the finished operations from the queue.
      if unfinished.isEmpty { await Task.yield() }
      for operation in unfinished { await operation.finished() }
    }
  }
}
