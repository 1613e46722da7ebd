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
/// the last attempt is the operation's error, and ``attemptErrors`` contains the latest errors.
///
/// ## Backing off
///
/// The delays are measured on the operation's ``AsyncOperation/clock``. While the operation backs off, it holds no
/// thread, no slot of a group, and none of its keys. It waits its turn and takes its keys again before the next attempt, and each
/// attempt is one start of a throttle. To hold a key across attempts, give it to a group around this operation. A slot of
/// an `OperationQueue` cannot be released. If the operation runs inside an operation that is not a group, such as a
/// `flatMap`, the enclosing operation keeps its slot.
///
/// ## Cancellation
///
/// Cancelling this operation ends the delay or cancels the running attempt, and there is no further attempt. If an
/// attempt is cancelled by itself, without an error, this operation is cancelled as well. The timeout of an attempt is
/// an error like any other.
///
/// ## Timeout
///
/// The operation's own timeout covers all attempts and delays.
public final class RetryOperation<Output: Sendable>: ResultOperation<Output>, @unchecked Sendable {
  private let attempts: Int
  private let backoff: Backoff
  private let attemptState: Locked<AttemptState>

  private struct AttemptState {
    /// Released when the operation finishes.
    var plan: Plan?
    var failedAttempts = 0
    var latestErrors: [any Error] = []
  }

  private typealias Plan = (
    decide: @Sendable (_ result: Result<Output, any Error>, _ attempt: Int) -> RetryDecision,
    make: @Sendable (_ attempt: Int) throws -> AnyOutputOperation<Output>
  )

  /// Creates an operation that makes up to `attempts` attempts.
  ///
  /// - Parameters:
  ///   - attempts: The maximum number of attempts, including the first. At least 1.
  ///   - backoff: The delays between attempts.
  ///   - retryIf: Returns whether to retry after this error of this attempt. The first attempt is 1. Not called after
  ///     the last attempt.
  ///   - make: Makes a new operation for each attempt. If it throws, the error is the attempt's error. For the
  ///     thread, see <doc:ThreadingAndCancellation>.
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
  public convenience init(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryIf: @escaping @Sendable (_ error: any Error, _ attempt: Int) -> RetryDecision,
    _ make: @escaping @Sendable (_ attempt: Int) throws -> ResultOperation<Output>
  ) {
    self.init(attempts, backoff, ({ $0.decision(retryIf, $1) }, { AnyOutputOperation(try make($0)) }))
  }

  /// Creates an operation that also retries after values, for example until a server has completed an order.
  ///
  /// ```swift
  /// let order = RetryOperation(attempts: 10, backoff: .constant(.seconds(1)), retryUnless: { $0.isComplete }) { _ in
  ///   LoadOrder(id)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - attempts: The maximum number of attempts, including the first. At least 1. The value of the last attempt is the
  ///     operation's value in any case.
  ///   - backoff: The delays between attempts.
  ///   - isAcceptable: Returns whether the value is the operation's value. Not called after the last attempt, nor after
  ///     an error, which is retried.
  ///   - make: Makes a new operation for each attempt, as in the other initializers.
  public convenience init(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryUnless isAcceptable: @escaping @Sendable (_ value: Output) -> Bool,
    _ make: @escaping @Sendable (_ attempt: Int) throws -> ResultOperation<Output>
  ) {
    let decide = { @Sendable (result: Result<Output, any Error>, _: Int) -> RetryDecision in
      if case .success(let value) = result { isAcceptable(value) ? .stop : .retry } else { .retry }
    }
    self.init(attempts, backoff, (decide, { AnyOutputOperation(try make($0)) }))
  }

  private init(_ attempts: Int, _ backoff: Backoff, _ plan: Plan) {
    if attempts < 1 { misuse("A RetryOperation cannot try \(attempts) times: give it 1 attempt or more.") }
    self.attempts = attempts
    self.backoff = backoff
    attemptState = Locked(AttemptState(plan: plan))
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
  public convenience init(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryIf: @escaping @Sendable (_ error: any Error, _ attempt: Int) -> RetryDecision,
    _ make: @escaping @Sendable (_ attempt: Int) throws -> AsyncOperation
  ) where Output == Void {
    self.init(attempts, backoff, ({ $0.decision(retryIf, $1) }, { AnyOutputOperation(anyOperation: try make($0)) }))
  }

  /// The errors of the last 16 failed attempts so far, in order.
  public var attemptErrors: [any Error] { attemptState.withLock { $0.latestErrors } }

  /// The number of failed attempts so far.
  public var failedAttempts: Int { attemptState.withLock { $0.failedAttempts } }

  override var runsOthersInside: Bool { true }

  public override func execute() {
    keepPlace()
    attempt(1)
  }

  /// Finishes if the operation backs off. Otherwise the attempt is cancelled, and the operation finishes after it.
  public override func didCancel() {
    if core.withLock({ $0.extras?.pause != nil }) { finish() }
  }

  override func prepareToFinish() { _ = attemptState.withLock { $0.plan.take() } }

  private func attempt(_ number: Int) {
    guard !isCancelled, let plan = attemptState.withLock({ $0.plan }) else { return finish() }
    do {
      runInside(try Trampoline.isolate { try plan.make(number) }) { self.ended(attempt: number, with: $0.result) }
    } catch {
      ended(attempt: number, with: .failure(error))
    }
  }

  private func ended(attempt number: Int, with result: Result<Output, any Error>) {
    // The operation may have finished meanwhile, which ends the attempt.
    guard isExecuting else { return }
    if case .failure(let error) = result {
      if error is CancellationError {
        cancel()
        return finish()
      }
      // The oldest error is released without the lock.
      _ = attemptState.withLock { state in
        state.failedAttempts += 1
        state.latestErrors.append(error)
        return state.latestErrors.count > 16 ? state.latestErrors.removeFirst() : nil
      }
    }
    guard number < attempts, !isCancelled, let plan = attemptState.withLock({ $0.plan }) else {
      return finish(with: result)
    }
    let decision = Trampoline.isolate { plan.decide(result, number) }
    guard let delay = decision.delay?(number, backoff) else { return finish(with: result) }
    `continue`(after: delay, before: "attempt \(number + 1) of \(attempts)") { self.attempt(number + 1) }
  }
}

extension Result where Failure == any Error {
  /// The decision of a `retryIf` closure after this result. A value is final.
  fileprivate func decision(_ retryIf: (any Error, Int) -> RetryDecision, _ attempt: Int) -> RetryDecision {
    if case .failure(let error) = self { retryIf(error, attempt) } else { .stop }
  }
}

/// The decision whether a ``RetryOperation`` retries, and after which delay.
public struct RetryDecision: Sendable {
  /// Returns the delay after an attempt. Nil if there is no retry.
  let delay: (@Sendable (_ attempt: Int, _ backoff: Backoff) -> Duration)?

  /// The decision not to retry, because the error is final.
  public static var stop: Self { Self(delay: nil) }

  /// The decision to retry after the delay of the backoff.
  public static var retry: Self { Self { attempt, backoff in backoff.delay(after: attempt) } }

  /// Returns the decision to retry after this delay, instead of the delay of the backoff. A negative delay counts as
  /// zero.
  public static func retry(after delay: Duration) -> Self { Self { _, _ in delay } }
}
