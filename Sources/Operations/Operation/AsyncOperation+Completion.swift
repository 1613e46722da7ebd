public import Foundation

extension AsyncOperation {
  /// Waits until the operation has finished, and throws its error.
  ///
  /// - Throws: After a timeout, one ``OperationError`` with the code ``OperationError/Code/timedOut``. Otherwise, an
  ///   ``AggregateError`` for a group or for several errors, the error itself for a single error, or
  ///   `CancellationError` if the operation was cancelled and has no error.
  public final func completed() async throws {
    await finished()
    if let error = outcomeError { throw error }
  }

  /// The one error that represents the outcome of the operation, or nil if it was successful.
  var outcomeError: (any Error)? {
    let lifecycle = core.withLock { $0.lifecycle }
    if lifecycle.failures.isEmpty {
      return lifecycle.isCancelled && lifecycle.decision != .finish ? CancellationError() : nil
    }
    let failures = failures(of: lifecycle)
    let isOneError = failures.count == 1 && !lifecycle.hasPaths && !isGroupOperation
    if isOneError || lifecycle.decision == .timeout { return failures[0].error }
    let name = displayName
    return AggregateError(failures.map { $0.below(name) }, isCancelled: lifecycle.isCancelled)
  }

  /// The failures of the operation, with paths relative to it.
  final var ownFailures: [OperationFailure] { failures(of: core.withLock { $0.lifecycle }) }

  /// Returns the failures that a lifecycle has recorded. After a timeout, this is one failure whose causes are the
  /// other failures.
  final func failures(of lifecycle: OperationLifecycle) -> [OperationFailure] {
    let failures = lifecycle.failures
    guard lifecycle.decision == .timeout, failures.count > 1, let timeout = failures[0].error as? OperationError else {
      return failures
    }
    let name = displayName
    let causes = failures.dropFirst().map { $0.path.isEmpty ? $0.error : $0.below(name) }
    let error = OperationError(timeout.code, timeout.message, underlyingErrors: causes)
    return [OperationFailure(path: [], error: error)]
  }
}

extension Operation {
  /// Waits until the operation has finished, without holding a thread. The method does not start the operation.
  ///
  /// The observers of an ``AsyncOperation`` are notified before this method returns. Cancelling the waiting task has
  /// no effect: the wait ends when the operation finishes.
  public func finished() async {
    await withCheckedContinuation { continuation in
      if let operation = self as? AsyncOperation {
        operation.whenFinished { continuation.resume() }
      } else if isFinished {
        continuation.resume()
      } else {
        FinishRelay { continuation.resume() }.wait(for: [self])
      }
    }
  }
}
