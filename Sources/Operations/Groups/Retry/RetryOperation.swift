/// An operation that makes attempts until one succeeds.
///
/// ```swift
/// let page = RetryOperation(attempts: 5, backoff: .exponential(initial: .milliseconds(100), cap: .seconds(10))) { _ in
///   Download(url)
/// }
/// ```
///
/// Each attempt is a separate operation, which runs inside this one together with its dependencies that are in no queue
/// or group. The value of the first successful attempt is the operation's value. If no attempt succeeds, the error of
/// the last attempt is the operation's error, and ``attemptErrors`` contains all errors.
///
/// ## Backing off
///
/// The delays are measured on the operation's ``AsyncOperation/clock``. While the operation backs off, it holds no
/// thread and releases its slot in a group, so that other members can run. A slot of an `OperationQueue` cannot be
/// released. An operation that has keys keeps its slot, because an operation that takes the slot might wait for the
/// keys. If the operation runs inside an operation that is not a group, such as a `flatMap`, the enclosing operation
/// keeps its slot.
///
/// ## Cancellation
///
/// Cancelling this operation ends the delay or cancels the running attempt, and there is no further attempt. If an
/// attempt is cancelled by itself, without an error, this operation is cancelled as well. An attempt that timed out
/// is retried.
///
/// ## Timeout
///
/// The operation's own timeout covers all attempts and delays.
public final class RetryOperation<Output: Sendable>: ResultOperation<Output>, @unchecked Sendable {
  private let attempts: Int
  private let backoff: Backoff
  /// The closures that the caller passed. Released when the operation finishes.
  private let plan: Locked<Plan?>
  private let failed = Locked<[any Error]>([])

  private struct Plan {
    let retryIf: @Sendable (_ error: any Error, _ attempt: Int) -> RetryDecision
    let make: @Sendable (_ attempt: Int) throws -> AnyOutputOperation<Output>
  }

  /// Creates an operation that makes up to `attempts` attempts.
  ///
  /// - Parameters:
  ///   - attempts: The maximum number of attempts, including the first. At least 1.
  ///   - backoff: The delays between attempts.
  ///   - retryIf: Returns whether to retry after this error of this attempt. The first attempt is 1. Not called after
  ///     the last attempt.
  ///   - make: Makes a new operation for each attempt. If it throws, the error is the attempt's error. Called where
  ///     this operation executes. In a scheduler's queue, that is on the scheduler.
  public convenience init(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryIf: @escaping @Sendable (_ error: any Error, _ attempt: Int) -> Bool = { _, _ in true },
    _ make: @escaping @Sendable (_ attempt: Int) throws -> ResultOperation<Output>
  ) {
    self.init(attempts: attempts, backoff: backoff, retryIf: { retryIf($0, $1) ? .retry : .stop }, make)
  }

  /// Creates an operation whose `retryIf` can also set the delay, for example from a server's `Retry-After` header.
  ///
  /// ```swift
  /// let page = RetryOperation(
  ///   attempts: 5,
  ///   retryIf: { error, _ in
  ///     guard let busy = error as? ServerBusy else { return .stop }
  ///     return .retry(after: busy.retryAfter)
  ///   }
  /// ) { _ in Download(url) }
  /// ```
  public init(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryIf: @escaping @Sendable (_ error: any Error, _ attempt: Int) -> RetryDecision,
    _ make: @escaping @Sendable (_ attempt: Int) throws -> ResultOperation<Output>
  ) {
    if attempts < 1 { misuse("A RetryOperation cannot try \(attempts) times: give it 1 attempt or more.") }
    self.attempts = attempts
    self.backoff = backoff
    plan = Locked(Plan(retryIf: retryIf) { AnyOutputOperation(try make($0)) })
    super.init()
  }

  /// Creates an operation that retries an operation of any kind, including a group.
  ///
  /// ```swift
  /// let sync = RetryOperation(attempts: 3) { _ in
  ///   GroupOperation("Sync") { login ==> upload }
  /// }
  /// ```
  @_disfavoredOverload
  public convenience init(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryIf: @escaping @Sendable (_ error: any Error, _ attempt: Int) -> Bool = { _, _ in true },
    _ make: @escaping @Sendable (_ attempt: Int) throws -> AsyncOperation
  ) where Output == Void {
    self.init(attempts: attempts, backoff: backoff, retryIf: { retryIf($0, $1) ? .retry : .stop }, make)
  }

  /// Creates an operation that retries an operation of any kind and whose `retryIf` can also set the delay.
  @_disfavoredOverload
  public init(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryIf: @escaping @Sendable (_ error: any Error, _ attempt: Int) -> RetryDecision,
    _ make: @escaping @Sendable (_ attempt: Int) throws -> AsyncOperation
  ) where Output == Void {
    if attempts < 1 { misuse("A RetryOperation cannot try \(attempts) times: give it 1 attempt or more.") }
    self.attempts = attempts
    self.backoff = backoff
    plan = Locked(Plan(retryIf: retryIf) { AnyOutputOperation(anyOperation: try make($0)) })
    super.init()
  }

  /// The errors so far, one for each failed attempt, in order.
  public var attemptErrors: [any Error] { failed.withLock { $0 } }

  override var runsOthersInside: Bool { true }

  public override func execute() {
    keepPlace()
    attempt(1)
  }

  /// Finishes if the operation backs off. Otherwise the attempt is cancelled, and the operation finishes after it.
  public override func didCancel() {
    if core.withLock({ $0.extras?.pause != nil }) { finish() }
  }

  override func prepareToFinish() {
    let plan = plan.withLock { $0.take() }
    _ = consume plan
  }

  private func attempt(_ number: Int) {
    guard !isCancelled, let plan = plan.withLock({ $0 }) else { return finish() }
    do {
      runInside(try Trampoline.isolate { try plan.make(number) }) { self.ended(attempt: number, with: $0.result) }
    } catch {
      ended(attempt: number, with: .failure(error))
    }
  }

  private func ended(attempt number: Int, with result: Result<Output, any Error>) {
    // The operation may have finished meanwhile, which ends the attempt.
    guard isExecuting else { return }
    switch result {
    case .success: finish(with: result)
    case .failure(let error): failed(attempt: number, with: error)
    }
  }

  private func failed(attempt number: Int, with error: any Error) {
    if error is CancellationError {
      cancel()
      return finish()
    }
    failed.withLock { $0.append(error) }
    guard number < attempts, !isCancelled, let plan = plan.withLock({ $0 }) else { return finish(with: error) }
    let decision = Trampoline.isolate { plan.retryIf(error, number) }
    guard decision.isRetry else { return finish(with: error) }
    let delay = decision.delay ?? backoff.delay(after: number)
    `continue`(after: delay, before: "attempt \(number + 1) of \(attempts)") { self.attempt(number + 1) }
  }
}

/// The decision whether a ``RetryOperation`` retries, and after which delay.
public struct RetryDecision: Sendable {
  let isRetry: Bool
  let delay: Duration?

  /// The decision not to retry, because the error is final.
  public static var stop: Self { Self(isRetry: false, delay: nil) }

  /// The decision to retry after the delay of the backoff.
  public static var retry: Self { Self(isRetry: true, delay: nil) }

  /// Returns the decision to retry after this delay, instead of the delay of the backoff. A negative delay counts as
  /// zero.
  public static func retry(after delay: Duration) -> Self { Self(isRetry: true, delay: delay) }
}
