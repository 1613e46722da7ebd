/// Tries until one attempt succeeds.
///
/// ```swift
/// let page = RetryOperation(attempts: 5, backoff: .exponential(initial: .milliseconds(100), cap: .seconds(10))) { _ in
///   Download(url)
/// }
/// ```
///
/// Each attempt is an operation of its own, which runs inside this one together with what it waits for, as far as that
/// is in no queue or group yet. The value of the first that succeeds is the value; the error of the last one is the
/// error, and ``attemptErrors`` are all of them.
///
/// - **Pauses** follow the operation's ``AsyncOperation/clock``. They hold no thread, and give the slot back that the
///   operation has in a group, so that other members run meanwhile. (A slot of an OperationQueue cannot be given back.
///   One that has keys keeps its slot: who takes that might wait for them.)
/// - **Cancelling** ends the pause, or cancels the attempt that runs, and there is no further one. An attempt that is
///   cancelled by itself, without an error, cancels this operation: somebody does not want it done. One that timed out
///   is tried again.
/// - **Its own timeout** counts over all attempts and pauses.
public final class RetryOperation<Output: Sendable>: ResultOperation<Output>, @unchecked Sendable {
  private let attempts: Int
  private let backoff: Backoff
  /// Taken when the operation ends.
  private let plan: Locked<Plan?>
  private let failed = Locked<[any Error]>([])

  private struct Plan {
    let retryIf: @Sendable (_ error: any Error, _ attempt: Int) -> RetryDecision
    let make: @Sendable (_ attempt: Int) throws -> AnyOutputOperation<Output>
  }

  /// - Parameters:
  ///   - attempts: How often to try in all, the first time included. From 1 up.
  ///   - backoff: How long to wait between two attempts.
  ///   - retryIf: Whether to try again after this error of this attempt; the first is attempt 1. Not asked after the
  ///     last.
  ///   - make: Makes the operation of an attempt, a new one each time; what it throws is the attempt's error.
  ///     Called where the operation executes: in the queue of a scheduler, on the scheduler.
  public convenience init(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryIf: @escaping @Sendable (_ error: any Error, _ attempt: Int) -> Bool = { _, _ in true },
    _ make: @escaping @Sendable (_ attempt: Int) throws -> ResultOperation<Output>
  ) {
    self.init(attempts: attempts, backoff: backoff, retryIf: { retryIf($0, $1) ? .retry : .stop }, make)
  }

  /// The same, where `retryIf` may also say how long to wait, as a server does with `Retry-After`.
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

  /// Retries an operation of any kind, a group included.
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

  /// Retries an operation of any kind, where `retryIf` may also say how long to wait.
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

  /// What went wrong so far, an error for each attempt that failed, in order.
  public var attemptErrors: [any Error] { failed.withLock { $0 } }

  override var runsOthersInside: Bool { true }

  public override func execute() {
    keepPlace()
    attempt(1)
  }

  /// A pause ends at once; an attempt is cancelled, and the operation finishes when that has.
  public override func didCancel() {
    if core.withLock({ $0.extras?.pause != nil }) { finish() }
  }

  override func willFinish() {
    let plan = plan.withLock { plan in
      defer { plan = nil }
      return plan
    }
    _ = consume plan
  }

  private func attempt(_ number: Int) {
    guard !isCancelled, let plan = plan.withLock({ $0 }) else { return finish() }
    do { runInside(try plan.make(number)) { self.ended(attempt: number, with: $0.result) } } catch {
      ended(attempt: number, with: .failure(error))
    }
  }

  private func ended(attempt number: Int, with result: Result<Output, any Error>) {
    // It may have been ended meanwhile, and the attempt because of that.
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
    let decision = plan.retryIf(error, number)
    guard decision.isRetry else { return finish(with: error) }
    let delay = decision.delay ?? backoff.delay(after: number)
    if delay > .zero {
      pause(for: delay, before: "attempt \(number + 1) of \(attempts)") { self.attempt(number + 1) }
    } else if keepPlace().isParticular {
      keepPlace().run { self.attempt(number + 1) }
    } else {
      // An attempt that could not even be made has failed on top of this one.
      Trampoline.run { self.attempt(number + 1) }
    }
  }
}

/// Whether a ``RetryOperation`` is to try again, and when.
public struct RetryDecision: Sendable {
  let isRetry: Bool
  let delay: Duration?

  /// The error is final.
  public static var stop: Self { Self(isRetry: false, delay: nil) }

  /// Try again, after the pause that the backoff says.
  public static var retry: Self { Self(isRetry: true, delay: nil) }

  /// Try again after this pause, whatever the backoff says. At once if it is not positive.
  public static func retry(after delay: Duration) -> Self { Self(isRetry: true, delay: delay) }
}
