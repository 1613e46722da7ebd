/// Runs one operation after another until there is no next one, such as the requests that poll a server.
///
/// ```swift
/// let poll = RepeatOperation(pausing: .constant(.seconds(5))) { iteration in
///   iteration <= 12 && !order.isReady ? CheckStatus(of: order) : nil
/// }
/// ```
///
/// Each operation runs inside this one, together with the operations it waits for that are in no queue or group yet.
/// The operation finishes when there is no next one, or with the first error of one.
///
/// - **Pauses** follow the operation's ``AsyncOperation/clock``, as those of a ``RetryOperation`` do: a pause holds no
///   thread, and gives back the slot that the operation has in a group, unless the operation has keys. A slot of an
///   `OperationQueue` cannot be given back.
/// - **Cancelling** ends the pause, or cancels the operation that runs, and no further one is made. An operation that is
///   cancelled by itself, without an error, cancels this operation.
/// - **Its own timeout** counts over all operations and pauses.
public final class RepeatOperation: AsyncOperation, @unchecked Sendable {
  private let backoff: Backoff
  /// Taken when the operation ends.
  private let make: Locked<(@Sendable (_ iteration: Int) -> AsyncOperation?)?>

  /// - Parameters:
  ///   - backoff: How long to wait after each operation.
  ///   - make: Returns a new operation, which is in no queue or group, for each iteration, or nil to finish. The first
  ///     is iteration 1. Called where the operation executes: in the queue of a scheduler, on the scheduler.
  public init(pausing backoff: Backoff = .immediate, _ make: @escaping @Sendable (_ iteration: Int) -> AsyncOperation?)
  {
    self.backoff = backoff
    self.make = Locked(make)
    super.init()
  }

  override var runsOthersInside: Bool { true }

  public override func execute() {
    keepPlace()
    run(iteration: 1)
  }

  /// Finishes if the operation pauses. Otherwise the operation that runs is cancelled, and its end finishes this one.
  public override func didCancel() {
    if core.withLock({ $0.extras?.pause != nil }) { finish() }
  }

  override func willFinish() {
    let make = make.withLock { $0.take() }
    _ = consume make
  }

  private func run(iteration: Int) {
    guard !isCancelled, let make = make.withLock({ $0 }), let operation = make(iteration) else { return finish() }
    refuseSelfDependency(operation)
    runInside(AnyOutputOperation(anyOperation: operation)) { self.ended(iteration: iteration, with: $0) }
  }

  private func ended(iteration: Int, with outcome: InnerOutcome<Void>) {
    // The operation may have been ended meanwhile, and its iteration because of that.
    guard isExecuting else { return }
    switch outcome.result {
    case .success: break
    case .failure(is CancellationError):
      cancel()
      return finish()
    case .failure(let error): return finish(with: error)
    }
    let delay = backoff.delay(after: iteration)
    if delay > .zero {
      pause(for: delay, before: "iteration \(iteration + 1)") { self.run(iteration: iteration + 1) }
    } else if keepPlace().isParticular {
      keepPlace().run { self.run(iteration: iteration + 1) }
    } else {
      Trampoline.run { self.run(iteration: iteration + 1) }
    }
  }
}
