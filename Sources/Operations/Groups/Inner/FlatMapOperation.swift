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
    weak var operation: Next?
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
      if !runInsideIfFree(operation, then: { self.end(with: $0) }) { follow(operation) }
    } catch { finish(with: error) }
  }

  /// It is somebody else's: in a queue or group, or finished.
  private func follow(_ operation: Next) {
    followed.withLock { $0 = Followed(isSome: true, operation: operation) }
    if isCancelled { return finish() }
    operation.whenSettled(for: self) { [unowned operation] in
      let result = operation.result ?? .failure(operation.outputMissingError)
      // Another flatMap may follow this one, and so on.
      Trampoline.run { self.end(with: result) }
    }
    // If it has been ended meanwhile, that may have been too early to forget it.
    if !isExecuting { operation.forget(follower: self) }
  }

  override func willFinish() { followed.withLock { $0.operation }?.forget(follower: self) }

  /// A cancellation is no failure: around it a group would count it as one.
  private func end(with result: Result<Output, any Error>) {
    guard case .failure(is CancellationError) = result else { return finish(with: result) }
    // It may have been ended meanwhile.
    if isExecuting { cancel() }
    finish()
  }

  override func didCancel() {
    if followed.withLock({ $0.isSome }) { finish() }
  }

  override func dropWork() { next = nil }
}
