/// An operation that finishes with the result of the operation made from its input.
final class FlatMapOperation<Input: Sendable, Next: OutputOperation>: ResultOperation<Next.Output>, InputOperation,
  @unchecked Sendable
{
  /// The input. Written before execution, on the executing thread.
  var input: Input?
  /// The closure that makes the next operation. Released after execution, or when the operation finishes without
  /// executing.
  private var next: (@Sendable (Input) throws -> Next)?

  init(_ next: @escaping @Sendable (Input) throws -> Next) {
    self.next = next
    super.init()
  }

  override var runsOthersInside: Bool { true }

  override func execute() {
    defer { next = nil }
    guard let input, let next else { return finish(with: inputMissingError) }
    do {
      let operation = try Trampoline.isolate { try next(input) }
      refuseSelfDependency(operation)
      runInsideOrFollow(AnyOutputOperation(operation)) { self.end(with: $0) }
    } catch { finish(with: error) }
  }

  /// Finishes with an outcome. A cancellation adds no error, because an enclosing group would count the error as a
  /// failure.
  private func end(with outcome: InnerOutcome<Output>) {
    switch outcome.result {
    case .success(let output): finish(returning: output)
    case .failure(is CancellationError):
      // The operation may have finished meanwhile.
      if isExecuting { cancel() }
      finish()
    case .failure: carryOut(core.withLock { $0.finish(outcome.failures) })
    }
  }

  override func releaseWork() { next = nil }
}

extension OutputOperation {
  /// Returns an operation that finishes with the result of the operation made from this one's value.
  ///
  /// ```swift
  /// let firstPage = try await queue.run(graphEndingIn: index.flatMap { Download($0.pages[0]) })
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
    pass(to: FlatMapOperation(next))
  }
}
