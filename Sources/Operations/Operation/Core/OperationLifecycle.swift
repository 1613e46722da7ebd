/// The state machine of an operation, as a value.
///
/// Each event is a mutating method that returns an action. The owner of the value calls the method under its lock, and
/// carries out the action after the lock has been released. The methods have no side effects, so a test can walk every
/// sequence of events.
///
/// ```
/// pending ──start──▶ (preparing ◀──▶ evaluating) ──▶ executing ──finish──▶ ending ──complete──▶ finished
///    └─start, cancelled or finished before─▶ skipped ──end──▶ ending
/// ```
///
/// An operation with inputs, conditions or a permit is prepared before it executes. It holds no thread while its
/// conditions are evaluated.
struct OperationLifecycle {
  enum Phase: Hashable, Sendable {
    case pending
    /// Started, and being prepared for execution on the thread that started it. That thread handles a cancellation or
    /// a finish.
    case preparing
    /// Started, and waiting for its conditions or its permit. The caller that cancels or finishes the operation
    /// carries out its end.
    case evaluating
    case executing
    /// Started, but it will not execute, because it was cancelled or finished before.
    case skipped
    /// One caller is carrying out the end. No other caller may.
    case ending
    case finished
  }

  enum StartAction: Hashable {
    case execute
    /// The caller must prepare the operation, which then executes.
    case prepare
    /// The caller must finish the operation without executing it.
    case skip
    /// The operation has finished.
    case ignore
    /// The operation has been started before, which is a programmer error.
    case refuse
  }

  enum FinishAction: Hashable {
    /// The thread that starts or prepares the operation will carry out the end.
    case keep
    /// The caller must carry out the end.
    case end
    /// The caller must carry out the end of an operation that does not execute.
    case skip
    case ignore
  }

  enum CancelAction: Hashable {
    /// The caller must notify the observers and the members.
    ///
    /// - Parameters:
    ///   - whileExecuting: Whether the operation is executing.
    ///   - skips: Whether the caller must carry out the end without executing the operation.
    case announce(whileExecuting: Bool, skips: Bool)
    case ignore
  }

  /// The reason for a cancellation.
  enum CancelReason {
    case none
    case failure(FailureReport)
    case timeout(OperationError)
  }

  /// The event that decides the outcome of the operation. The first one decides.
  enum Decision: Hashable, Sendable {
    case none
    case finish
    case cancellation
    case timeout
  }

  private(set) var phase: Phase = .pending
  private(set) var isCancelled = false
  private(set) var hasExecuted = false
  /// The failures in order, with paths relative to the operation. If a timeout decided, the first failure is that of
  /// the timeout, and the others are its causes: see ``AsyncOperation/failures(of:)``.
  private(set) var failures: [OperationFailure] = []
  /// Whether a finish came before the execution.
  private(set) var isFinishKept = false
  private(set) var decision: Decision = .none
  /// Whether a failure arrived as an `AggregateError`.
  private(set) var hasPaths = false

  mutating func start(preparing: Bool = false) -> StartAction {
    switch phase {
    case .pending:
      if isEnded {
        phase = .skipped
        return .skip
      }
      if preparing {
        phase = .preparing
        return .prepare
      }
      phase = .executing
      hasExecuted = true
      return .execute
    case .preparing, .evaluating, .executing, .skipped, .ending: return .refuse
    case .finished: return .ignore
    }
  }

  /// Whether the operation was cancelled or finished before it could execute.
  private var isEnded: Bool { isCancelled || isFinishKept }

  /// Whether the operation is being prepared and has been neither cancelled nor finished.
  var mayExecute: Bool { phase == .preparing && !isEnded }

  /// Whether the operation is executing and has not been cancelled.
  var canContinue: Bool { phase == .executing && !isCancelled }

  /// Transitions an operation that is being prepared to `next`.
  ///
  /// - Returns: Whether it may proceed. Otherwise the caller must finish it without executing it.
  mutating func proceed(to next: Phase) -> Bool {
    guard phase == .preparing else { misuse("Only an operation that is being prepared can proceed; it was \(phase).") }
    phase = isEnded ? .skipped : next
    if phase == .executing { hasExecuted = true }
    return phase == next
  }

  /// Resumes the preparation, because the conditions are met or the permit was granted.
  ///
  /// - Returns: Whether the preparation must continue. Otherwise another caller has ended the operation meanwhile.
  mutating func resume() -> Bool {
    guard phase == .evaluating else { return false }
    phase = .preparing
    return true
  }

  /// Finishes the operation. The first finish counts, on any thread. The errors of later ones are not recorded.
  mutating func finish(_ report: FailureReport? = nil) -> FinishAction {
    switch phase {
    case .pending, .preparing:
      if isFinishKept { return .ignore }
      isFinishKept = true
    case .evaluating: phase = .skipped
    case .executing: phase = .ending
    case .skipped, .ending, .finished: return .ignore
    }
    if let report { append(report) }
    if decision == .none { decision = .finish }
    switch phase {
    case .skipped: return .skip
    case .ending: return .end
    case .pending, .preparing, .evaluating, .executing, .finished: return .keep
    }
  }

  /// Cancels the operation. The first cancellation counts. Its reason is recorded unless a finish came before.
  ///
  /// - Parameter unlessStarted: Whether to leave an executing operation alone.
  mutating func cancel(_ reason: CancelReason = .none, unlessStarted: Bool = false) -> CancelAction {
    switch phase {
    case .executing where unlessStarted: return .ignore
    case .pending, .preparing, .evaluating, .executing, .skipped:
      if isCancelled { return .ignore }
      isCancelled = true
      if decision == .none { decide(because: reason) }
      if phase == .evaluating {
        phase = .skipped
        return .announce(whileExecuting: false, skips: true)
      }
      return .announce(whileExecuting: phase == .executing, skips: false)
    case .ending, .finished: return .ignore
    }
  }

  /// Adds failures without ending the operation. A group collects the failures of its members this way.
  ///
  /// - Returns: Whether the failures were recorded. An operation that is ending or finished records none.
  mutating func record(_ report: FailureReport) -> Bool {
    switch phase {
    case .pending, .preparing, .evaluating, .executing, .skipped:
      append(report)
      return true
    case .ending, .finished: return false
    }
  }

  /// Claims the end of the operation, without recording an outcome.
  ///
  /// - Returns: Whether the caller must carry out the end.
  mutating func end() -> Bool {
    switch phase {
    case .executing, .skipped:
      phase = .ending
      return true
    case .pending, .preparing, .evaluating, .ending, .finished: return false
    }
  }

  /// Records that the end has been carried out, and that Foundation considers the operation finished.
  mutating func complete() {
    switch phase {
    case .ending: phase = .finished
    case .pending, .preparing, .evaluating, .executing, .skipped, .finished:
      misuse("The lifecycle settles once, and only after it has been ended; it was \(phase).")
    }
  }

  private mutating func decide(because reason: CancelReason) {
    switch reason {
    case .none: decision = .cancellation
    case .failure(let report):
      decision = .cancellation
      append(report)
    case .timeout(let error):
      decision = .timeout
      failures.insert(OperationFailure(path: [], error: error), at: 0)
    }
  }

  private mutating func append(_ report: FailureReport) {
    let counting = isCancelled ? report.failuresAfterCancellation : report.failures
    if report.hasPaths, !counting.isEmpty { hasPaths = true }
    failures += counting
  }
}
