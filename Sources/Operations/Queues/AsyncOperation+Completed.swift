extension AsyncOperation {
  /// Waits until the operation has finished, and throws what went wrong.
  ///
  /// - Throws: A group's failures as one ``AggregateError``; another operation's one error as itself, several as an
  ///   ``AggregateError``; `CancellationError` if it was cancelled and has no error.
  public final func completed() async throws {
    await finished()
    if let error = outcomeError { throw error }
  }

  /// The one error that stands for how the operation ended, or nil if it was successful.
  var outcomeError: (any Error)? {
    let lifecycle = core.withLock { $0.lifecycle }
    if lifecycle.failures.isEmpty { return lifecycle.isCancelled ? CancellationError() : nil }
    let name = displayName
    let failures = lifecycle.failures.map { $0.below(name) }
    return failures.count == 1 && !(self is GroupOperation) ? failures[0].error : AggregateError(failures)
  }
}
