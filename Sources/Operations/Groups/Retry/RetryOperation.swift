import Foundation

/// An operation that makes attempts until one succeeds.
///
/// ```swift
/// let page = RetryOperation(attempts: 5, backoff: .exponential(initial: .milliseconds(100), cap: .seconds(10))) { _ in
///   Download(url)
/// }
/// ```
///
/// Each attempt is a call of a function, or a separate operation, which runs inside this one together with its
/// dependencies that are in no queue or group. The value of the first successful attempt is the operation's value. If
/// none succeeds, the error of the last one is the operation's error, and ``attemptErrors`` contains the latest errors.
///
/// ## Backing off
///
/// The next delay starts when no work of the attempt runs any more, so that attempts never overlap, even if an attempt
/// times out: see ``GroupOperation/drained()``. Until then, the operation keeps its slot and its keys. Work that ignores
/// its cancellation therefore holds up the next attempt until it returns, or until the operation's own timeout. To start
/// an attempt while another one hangs, use `first(of:staggered:)` of a queue.
///
/// The delays are measured on the operation's ``AsyncOperation/clock``. While the operation backs off, it holds no
/// thread, no slot of a group, and none of its keys. It takes them again before the next attempt, in its old place in
/// the wait queues, and each attempt is one start of a throttle. To hold a key across attempts, give it to a group
/// around this operation. A slot of an `OperationQueue` cannot be released. If the operation runs inside an operation
/// that is not a group, such as a `flatMap`, the enclosing operation keeps its slot.
///
/// ## Cancellation and timeout
///
/// Cancelling this operation ends the delay or cancels the running attempt, and there is no further attempt. If the
/// attempt fails meanwhile, its error is the operation's error. If an attempt is cancelled by itself, without an error,
/// this operation is cancelled as well. The timeout of an attempt is an error like any other.
///
/// The operation's own timeout covers all attempts and delays. The ``OperationError/underlyingErrors`` of its error are
/// the latest errors of the attempts.
public final class RetryOperation<Output: Sendable>: ResultOperation<Output>, @unchecked Sendable {
  private let attempts: Int
  private let backoff: Backoff
  private let isOfFunctions: Bool
  /// Released when the operation finishes. Guarded by the lock of the core, as the next two properties.
  private var plan: Plan?
  private var failedCount = 0
  private var latestErrors: [any Error] = []

  private typealias Outcome = Result<Output, any Error>
  private typealias Decide = @Sendable (_ result: Outcome, _ attempt: Int) -> RetryDecision
  private typealias Start = @Sendable (_ retry: RetryOperation, _ attempt: Int, _ context: TaskContext?) -> Void
  private typealias Plan = (decide: Decide, start: Start)

  /// Creates an operation that makes up to `attempts` attempts, each of which is a function.
  ///
  /// ```swift
  /// let page = RetryOperation(attempts: 3, backoff: .constant(.seconds(1))) { _ in try await fetch(url) }
  /// ```
  ///
  /// The function runs in a task, which is cancelled with this operation. Traces show no such attempts. For the other
  /// parameters, see the initializer for operations.
  @_disfavoredOverload
  public convenience init(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryIf: (@Sendable (_ error: any Error, _ attempt: Int) -> Bool)? = nil,
    retryUnless: (@Sendable (_ value: Output) -> Bool)? = nil,
    retryWhen: (@Sendable (_ result: Result<Output, any Error>, _ attempt: Int) -> RetryDecision)? = nil,
    _ body: @escaping @Sendable (_ attempt: Int) async throws -> Output,
    file: StaticString = #fileID,
    line: UInt = #line
  ) {
    if Output.self is Operation.Type {
      let problem = "A RetryOperation does not run a plain operation, or one that an asynchronous closure returns."
      misuse(problem + " Return a value, or make an AsyncOperation in a closure without await.", file: file, line: line)
    }
    let decide = Self.decide(retryIf, retryUnless, retryWhen)
    let origin = EventOrigin(file: file, line: line)
    self.init(attempts, backoff, decide, origin, isOfFunctions: true) { retry, number, context in
      retry.startTask(priority: retry.keepPlace().quality.taskPriority.rawValue, in: context, while: .executing) {
        do { retry.attemptDidEnd(number, .success(try await body(number))) } catch {
          let isCancelled = Task.isCancelled && meansCancelled(error)
          retry.attemptDidEnd(number, .failure(isCancelled ? CancellationError() : error))
        }
      }
    }
  }

  /// Creates an operation that makes up to `attempts` attempts, each of which is an operation.
  ///
  /// By default, every error is retried. An error is decided by `retryIf`, and a value by `retryUnless`. Where that
  /// closure is missing, `retryWhen` decides. None of them is called after the last attempt.
  ///
  /// ```swift
  /// let order = RetryOperation(attempts: 10, backoff: .constant(.seconds(1)), retryUnless: { $0.isComplete }) { _ in
  ///   LoadOrder(id)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - attempts: The maximum number of attempts, including the first. At least 1.
  ///   - backoff: The delays between attempts.
  ///   - retryIf: Returns whether to retry after this error of this attempt. The first attempt is 1.
  ///   - retryUnless: Returns whether the value is the operation's value. The value of the last attempt is in any case.
  ///   - retryWhen: Returns the decision after the result of this attempt, which can set the delay, for example from a
  ///     server's `Retry-After` header.
  ///   - make: Makes a new operation for each attempt. If it throws, the error is the attempt's error. For the
  ///     thread, see <doc:ThreadingAndCancellation>.
  ///   - file: The calling file, for the message of a trap.
  ///   - line: The calling line, for the message of a trap.
  public convenience init<Attempt: OutputOperation<Output>>(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryIf: (@Sendable (_ error: any Error, _ attempt: Int) -> Bool)? = nil,
    retryUnless: (@Sendable (_ value: Output) -> Bool)? = nil,
    retryWhen: (@Sendable (_ result: Result<Output, any Error>, _ attempt: Int) -> RetryDecision)? = nil,
    _ make: @escaping @Sendable (_ attempt: Int) throws -> Attempt,
    file: StaticString = #fileID,
    line: UInt = #line
  ) {
    let decide = Self.decide(retryIf, retryUnless, retryWhen)
    let origin = EventOrigin(file: file, line: line)
    self.init(attempts, backoff, decide, origin, Self.running { AnyOutputOperation(try make($0)) })
  }

  /// Creates an operation that retries an operation of any kind, including a group.
  ///
  /// ```swift
  /// let sync = RetryOperation(attempts: 3) { _ in
  ///   GroupOperation("Sync") { login ==> upload }
  /// }
  /// ```
  ///
  /// A closure whose `return` statements differ in their types states its own: `{ attempt -> AsyncOperation in … }`.
  @_disfavoredOverload
  public convenience init<Attempt: AttemptOperation>(
    attempts: Int,
    backoff: Backoff = .immediate,
    retryIf: (@Sendable (_ error: any Error, _ attempt: Int) -> Bool)? = nil,
    retryWhen: (@Sendable (_ result: Result<Output, any Error>, _ attempt: Int) -> RetryDecision)? = nil,
    _ make: @escaping @Sendable (_ attempt: Int) throws -> Attempt,
    file: StaticString = #fileID,
    line: UInt = #line
  ) where Output == Void {
    let decide = Self.decide(retryIf, nil, retryWhen)
    let origin = EventOrigin(file: file, line: line)
    self.init(attempts, backoff, decide, origin, Self.running { AnyOutputOperation(anyOperation: try make($0)) })
  }

  private init(
    _ attempts: Int,
    _ backoff: Backoff,
    _ decide: @escaping Decide,
    _ origin: EventOrigin,
    isOfFunctions: Bool = false,
    _ start: @escaping Start
  ) {
    if attempts < 1 {
      let problem = "A RetryOperation cannot try \(attempts) times: give it 1 attempt or more."
      misuse(problem, file: origin.file, line: origin.line)
    }
    self.attempts = attempts
    self.backoff = backoff
    self.isOfFunctions = isOfFunctions
    plan = (decide, start)
    super.init(in: isOfFunctions ? TaskContext() : TaskContext(reusable: ()))
  }

  private static func running(_ make: @escaping @Sendable (Int) throws -> AnyOutputOperation<Output>) -> Start {
    { retry, number, context in
      switch retry.call(in: context, { Result { try make(number) } }) {
      case .success(let attempt):
        attempt.operation.nameIfAnonymous("\(retry.displayName), attempt \(number)")
        retry.runInside(attempt) { retry.attemptDidEnd(number, $0.result, $0.inner, in: context) }
      case .failure(let error): retry.attemptDidEnd(number, .failure(error), in: context)
      }
    }
  }

  private static func decide(
    _ retryIf: (@Sendable (any Error, Int) -> Bool)?,
    _ retryUnless: (@Sendable (Output) -> Bool)?,
    _ retryWhen: Decide?
  ) -> Decide {
    { result, attempt in
      switch result {
      case .failure(let error):
        retryIf.map { $0(error, attempt) ? .retry : .stop } ?? retryWhen?(result, attempt) ?? .retry
      case .success(let value):
        retryUnless.map { $0(value) ? .stop : .retry } ?? retryWhen?(result, attempt) ?? .stop
      }
    }
  }

  /// The errors of the last 16 failed attempts so far, in order.
  public var attemptErrors: [any Error] { core.withLock { _ in latestErrors } }

  /// The number of failed attempts so far.
  public var failedAttempts: Int { core.withLock { _ in failedCount } }

  override var runsOthersInside: Bool { !isOfFunctions }

  override var beginsElsewhere: Bool { isOfFunctions }

  public override func execute() {
    keepPlace()
    attempt(1, in: context.take())
  }

  /// Finishes if the operation backs off or has timed out. Otherwise it finishes after the attempt, which is cancelled.
  public override func didCancel() { if isTimedOut || core.withLock({ $0.extras?.pause != nil }) { stop() } }

  private var isTimedOut: Bool { core.withLock { $0.lifecycle.decision == .timeout } }

  /// Finishes without another attempt. The causes of a timeout are the errors of the attempts.
  private func stop() { finish(withErrors: isTimedOut ? attemptErrors : []) }

  override func prepareToFinish() {
    _ = core.withLock { _ in
      // Not by `take()`, which needs the types of the closures when the program runs.
      defer { plan = nil }
      return plan
    }
  }

  private func attempt(_ number: Int, in context: TaskContext?) {
    guard !isCancelled, let start = core.withLock({ _ in plan?.start }) else { return stop() }
    start(self, number, context)
  }

  /// Without a context, the current task has the task-local values.
  private func attemptDidEnd(
    _ number: Int,
    _ result: Outcome,
    _ inner: AsyncOperation? = nil,
    in context: TaskContext? = nil
  ) {
    // The operation may have finished meanwhile, which ends the attempt.
    guard isExecuting else { return }
    if case .failure(let error) = result {
      if error is CancellationError {
        releaseTask()
        cancel()
        return stop()
      }
      // The oldest error is released without the lock.
      _ = core.withLock { _ in
        failedCount += 1
        latestErrors.append(error)
        return latestErrors.count > 16 ? latestErrors.removeFirst() : nil
      }
    }
    let decide = number < attempts && !isCancelled ? core.withLock { _ in plan?.decide } : nil
    let delay = call(in: context) { decide?(result, number).delay?(number, backoff) }
    releaseTask()
    guard let delay else { return isTimedOut ? stop() : finish(with: result) }
    let context = context ?? TaskContext()
    continueLater(behind: inner, after: delay, before: "attempt \(number + 1) of \(attempts)") {
      self.attempt(number + 1, in: context)
    }
  }
}

/// An operation of any kind as an attempt of a ``RetryOperation``. Every ``AsyncOperation`` conforms.
///
/// The compiler takes a closure that returns nothing for one that lacks an object of a class, but not of a protocol.
public protocol AttemptOperation: AsyncOperation {}

extension AsyncOperation: AttemptOperation {}

/// The decision whether a ``RetryOperation`` retries, and after which delay.
public struct RetryDecision: Sendable {
  /// Returns the delay after an attempt. Nil if there is no retry.
  let delay: (@Sendable (_ attempt: Int, _ backoff: Backoff) -> Duration)?

  /// The decision not to retry, because the error is final.
  public static var stop: Self { Self(delay: nil) }

  /// The decision to retry after the delay of the backoff.
  public static var retry: Self { Self { attempt, backoff in backoff.delay(after: attempt) } }

  /// Returns the decision to retry after this delay, instead of that of the backoff. A negative one counts as zero.
  public static func retry(after delay: Duration) -> Self { Self { _, _ in delay } }
}
