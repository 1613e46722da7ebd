/// An operation that runs operations one after another until there is no next operation, for example to poll a server.
///
/// ```swift
/// let pause = Backoff.constant(.seconds(5))
/// let poll = RepeatOperation(pausing: pause) { iteration in
///   iteration <= 12 && !order.isReady ? CheckStatus(of: order) : nil
/// }
/// ```
///
/// Each operation runs inside this one, together with its dependencies that are in no queue or group. This operation
/// finishes when there is no next operation, or with the first error.
///
/// ## Backing off
///
/// The operation backs off as a ``RetryOperation`` does, on its ``AsyncOperation/clock``: it holds no thread, no slot of
/// a group, and none of its keys, and takes them again before the next iteration.
///
/// ## Cancellation
///
/// Cancelling this operation ends the delay or cancels the running operation, and no further operation is made. If
/// the running operation is cancelled by itself, without an error, this operation is cancelled as well. The operation's
/// own timeout covers all operations and delays.
public final class RepeatOperation: AsyncOperation, @unchecked Sendable {
  private let backoff: Backoff
  /// Released when the operation finishes. Guarded by the lock of the core.
  private var plan: (context: TaskContext, make: @Sendable (_ iteration: Int) -> AsyncOperation?)?

  /// Creates an operation that runs operations one after another.
  ///
  /// - Parameters:
  ///   - backoff: The delay after each operation.
  ///   - make: Returns a new operation, which is in no queue or group, for each iteration, or nil to finish. The first
  ///     iteration is 1. For the thread, see <doc:ThreadingAndCancellation>.
  public init(pausing backoff: Backoff = .immediate, _ make: @escaping @Sendable (_ iteration: Int) -> AsyncOperation?)
  {
    self.backoff = backoff
    plan = (TaskContext(reusable: ()), make)
    super.init()
  }

  override var runsOthersInside: Bool { true }

  public override func execute() {
    keepPlace()
    iterate(1)
  }

  /// Finishes if the operation backs off. Otherwise it finishes after the running operation, which is cancelled.
  public override func didCancel() { if core.withLock({ $0.extras?.pause != nil }) { finish() } }

  override func prepareToFinish() { _ = core.withLock { _ in plan.take() } }

  private func iterate(_ iteration: Int) {
    guard !isCancelled, let plan = core.withLock({ _ in self.plan }) else { return finish() }
    let operation = call(in: plan.context) { plan.make(iteration) }
    guard let operation else { return finish() }
    refuseSelfDependency(operation)
    runInside(AnyOutputOperation(anyOperation: operation)) { self.ended(iteration: iteration, with: $0) }
  }

  private func ended(iteration: Int, with outcome: InnerOutcome<Void>) {
    // The operation may have finished meanwhile, which ends the iteration.
    guard isExecuting else { return }
    switch outcome.result {
    case .success: break
    case .failure(is CancellationError):
      cancel()
      return finish()
    case .failure(let error): return finish(with: error)
    }
    let delay = backoff.delay(after: iteration)
    `continue`(behind: outcome.inner, after: delay, before: "iteration \(iteration + 1)") {
      self.iterate(iteration + 1)
    }
  }
}
