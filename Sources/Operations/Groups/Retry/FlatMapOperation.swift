/// Ends as the operation does that its input leads to.
final class FlatMapOperation<Input: Sendable, Next: OutputOperation>: ResultOperation<Next.Output>, InputOperation,
  @unchecked Sendable
{
  /// Written before execution, on the thread that executes.
  var input: Input?
  /// Taken by execution or, if that never comes, by the end.
  private var next: (@Sendable (Input) throws -> Next)?

  /// The operation of somebody else that it follows.
  private let followed = Locked(Followed())

  private struct Followed {
    var isSome = false
    weak var operation: AsyncOperation?
  }

  init(_ next: @escaping @Sendable (Input) throws -> Next) {
    self.next = next
    super.init()
  }

  override var runsOthersInside: Bool { true }

  override func execute() {
    defer { next = nil }
    guard let input, let next else { return finish(with: inputMissingError) }
    do {
      let operation = try next(input)
      refuseSelfDependency(operation)
      let work = AnyOutputOperation(operation)
      if !runInsideIfFree(work, then: { self.end(with: $0) }) { follow(work) }
    } catch { finish(with: error) }
  }

  /// It is somebody else's: in a queue or group, or finished.
  private func follow(_ work: AnyOutputOperation<Output>) {
    followed.withLock { $0 = Followed(isSome: true, operation: work.operation) }
    if isCancelled { return finish() }
    let output = work.output
    work.operation.whenSettled(for: self) { [unowned operation = work.operation] in
      let outcome = InnerOutcome(of: AnyOutputOperation(operation, output))
      // Another flatMap may follow this one, and so on.
      Trampoline.run { self.end(with: outcome) }
    }
    // If it has been ended meanwhile, that may have been too early to forget it.
    if !isExecuting { work.operation.forget(follower: self) }
  }

  override func willFinish() { followed.withLock { $0.operation }?.forget(follower: self) }

  /// A cancellation is no failure: around it a group would count it as one.
  private func end(with outcome: InnerOutcome<Output>) {
    switch outcome.result {
    case .success(let output): finish(returning: output)
    case .failure(is CancellationError):
      // It may have been ended meanwhile.
      if isExecuting { cancel() }
      finish()
    case .failure: carryOut(core.withLock { $0.finish(outcome.failures) })
    }
  }

  override func didCancel() {
    if followed.withLock({ $0.isSome }) { finish() }
  }

  override func dropWork() { next = nil }
}

extension OutputOperation {
  /// An operation that ends as the one does that this one's value leads to.
  ///
  /// ```swift
  /// let firstPage = try await queue.run(graphEndingIn: index.flatMap { Download($0.pages[0]) })
  /// ```
  ///
  /// What `next` returns runs inside it, together with what that waits for, as far as it is in no queue or group yet,
  /// and is cancelled with it. One that is in a queue or a group, or has finished, is somebody else's: it is only
  /// waited for. Returning the operation that `flatMap` has made is a mistake that ends the program; one that waits for
  /// that operation, and runs inside it, ends it with ``OperationError/Code/dependencyCycle``.
  public func flatMap<Next: OutputOperation>(
    _ next: @escaping @Sendable (Output) throws -> Next
  ) -> ResultOperation<Next.Output> {
    pass(to: FlatMapOperation(next))
  }
}
