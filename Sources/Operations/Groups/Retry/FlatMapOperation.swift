/// An operation that finishes with the result of the operation made from its input.
final class FlatMapOperation<Input: Sendable, Output: Sendable>: ResultOperation<Output>, InputOperation,
  @unchecked Sendable
{
  /// Written before execution, on the executing thread.
  var input: Input?
  /// Released after execution, or when the operation finishes without executing.
  private var next: (@Sendable (Input) throws -> AnyOutputOperation<Output>)?

  init(_ next: @escaping @Sendable (Input) throws -> AnyOutputOperation<Output>) {
    self.next = next
    super.init(in: TaskContext())
  }

  override var runsOthersInside: Bool { true }

  override func execute() {
    defer { next = nil }
    guard let input, let next else { return finish(with: inputMissingError) }
    switch call(in: context.take() ?? TaskContext(detached: ()), { Result { try next(input) } }) {
    case .success(let work):
      refuseSelfDependency(work.operation)
      runInsideOrFollow(work) { outcome in
        switch outcome.result {
        case .success(let output): self.finish(returning: output)
        case .failure(is CancellationError):
          // The operation may have finished meanwhile. An enclosing group would count an error as a failure.
          if self.isExecuting { self.cancel() }
          self.finish()
        case .failure: self.finish(reporting: outcome.failures)
        }
      }
    case .failure(let error): finish(with: error)
    }
  }

  override func willNotExecute() { (next, context) = (nil, nil) }
}

extension OutputOperation {
  /// Returns an operation that finishes with the result of the operation made from this one's value.
  ///
  /// ```swift
  /// let firstPage = try await queue.run(index.flatMap { Download($0.pages[0]) })
  /// ```
  ///
  /// The operation that `next` returns runs inside the new operation, together with its dependencies that are in no
  /// queue or group, and is cancelled with it. If the returned operation is in a queue or group, or has finished, the
  /// new operation only waits for it.
  ///
  /// Returning the operation that `flatMap` created traps. If the returned operation runs inside the new operation and
  /// also waits for it, the new operation fails with ``OperationError/Code/dependencyCycle``.
  public func flatMap<Next: OutputOperation>(
    _ next: @escaping @Sendable (Output) throws -> Next
  ) -> ResultOperation<Next.Output> {
    pass(to: FlatMapOperation { AnyOutputOperation(try next($0)) })
  }

  /// Returns an operation that runs the operation made from this one's value, which can be of any kind, such as a group.
  ///
  /// It otherwise works as the method for an operation with a value.
  @_disfavoredOverload
  public func flatMap(_ next: @escaping @Sendable (Output) throws -> AsyncOperation) -> ResultOperation<Void> {
    pass(to: FlatMapOperation { AnyOutputOperation(anyOperation: try next($0)) })
  }
}
