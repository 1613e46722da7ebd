public import Foundation

extension OperationQueue {
  /// Runs an operation with everything that it waits for, and waits until it has finished, without holding a thread.
  ///
  /// The method adds the operation and, as ``addGraph(endingIn:)`` does, every `AsyncOperation` that it depends on and
  /// that is in no queue or group. Add plain Foundation dependencies separately.
  ///
  /// Cancelling the task cancels the operation, and not its dependencies, because other operations may wait for them.
  /// The call returns at once, and the operation leaves the queue when it has ended, or when the queue starts it. In a
  /// cancelled task, the operation finishes at once, and nothing is added.
  ///
  /// - Precondition: As for `addOperation`.
  /// - Throws: The error that ``AsyncOperation/completed()`` throws.
  public func run<O: AsyncOperation>(_ operation: O) async throws {
    // Before the operation is added, because a queue on Linux uses the priority that it has then.
    operation.escalatePriority(to: Task.currentPriority)
    if Task.isCancelled, operation.isFree {
      operation.cancelEvenIfUnused()
      return try await operation.completed()
    }
    await withTaskCancellationHandler {
      addWithDependencies(operation, inside: CurrentWork.innermost)
      try? await operation.settled()
    } onCancel: {
      operation.cancel()
    }
    // The cancellation may have finished the operation with an error of its own.
    try await operation.completed()
  }

  /// Runs an operation with everything that it waits for, and waits for its value, without holding a thread.
  ///
  /// ```swift
  /// let words = try await queue.run(download.map { $0.split(separator: " ").count })
  /// ```
  ///
  /// The dependencies are added, and cancellation works, as with the method for an operation without a value.
  ///
  /// - Throws: The error that ``AsyncOperation/completed()`` throws.
  @discardableResult
  public func run<O: OutputOperation>(_ operation: O) async throws -> O.Output {
    try await run(operation as AsyncOperation)
    return try operation.output()
  }
}

extension OperationQueue {
  /// Waits until the queue is empty or the waiting task is cancelled, without holding a thread.
  ///
  /// The wait includes operations that are added meanwhile. An operation leaves its queue when it finishes, possibly
  /// before its observers are notified. To wait for the observers, wait for the operation itself. To wait in a cancelled
  /// task, for example to shut down, call the method in a task of its own.
  public func finished() async {
    while !Task.isCancelled {
      let operations = operations
      if operations.isEmpty { return }
      let unfinished = operations.filter { !$0.isFinished }
      // Other threads are removing the finished operations from the queue.
      if unfinished.isEmpty { await Task.yield() }
      for operation in unfinished { await operation.finished() }
    }
  }
}
