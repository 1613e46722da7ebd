/// Ends as the operation does that its input leads to.
final class FlatMapOperation<Input: Sendable, Next: OutputOperation>: ResultOperation<Next.Output>, InputOperation,
  @unchecked Sendable
{
  /// Written before execution, on the thread that executes.
  var input: Input?
  /// Taken by execution or, if that never comes, by the end.
  private var next: (@Sendable (Input) throws -> Next)?

  private let isFollowing = Locked(false)

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
      if operation.isFree { runInside(operation) { self.end(with: $0) } } else { follow(operation) }
    } catch { finish(with: error) }
  }

  /// It is somebody else's: in a queue or group, or finished.
  private func follow(_ operation: Next) {
    isFollowing.withLock { $0 = true }
    if isCancelled { return finish() }
    operation.whenSettled { [unowned operation] in
      self.end(with: operation.result ?? .failure(operation.outputMissingError))
    }
  }

  /// A cancellation is no failure: around it a group would count it as one.
  private func end(with result: Result<Output, any Error>) {
    guard case .failure(is CancellationError) = result else { return finish(with: result) }
    // It may have been ended meanwhile.
    if isExecuting { cancel() }
    finish()
  }

  override func didCancel() {
    if isFollowing.withLock({ $0 }) { finish() }
  }

  override func dropWork() { next = nil }
}
