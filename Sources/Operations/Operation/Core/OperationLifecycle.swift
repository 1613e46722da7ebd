/// Where an operation is in its life, as a value: what happens, and what is to be done about it.
///
/// Every event is a mutating function that returns an action; whoever holds the value takes the action under its lock
/// and carries it out when the lock is released. There is no effect in here, so a test can walk every sequence.
///
/// ```
/// pending ──start──▶ (preparing ◀──▶ evaluating) ──▶ executing ──finish──▶ ending ──settle──▶ finished
///    └─start, cancelled or finished before─▶ skipped ──end──▶ ending
/// ```
///
/// An operation prepares itself if it has inputs or conditions. While its conditions are evaluated it is on no thread.
struct OperationLifecycle {
  enum Phase: Hashable, Sendable {
    case pending
    /// Started, and on its way to execute on the thread that started it, which sees to what comes in between.
    case preparing
    /// Started; its conditions are being evaluated. Whoever cancels or finishes it sees to its end.
    case evaluating
    case executing
    /// Started, but not to execute: it was cancelled or finished before.
    case skipped
    /// One caller has the right, and the duty, to see the operation through to its end.
    case ending
    case finished
  }

  enum StartAction: Hashable {
    case execute
    case prepare
    case skip
    case ignore
    /// The second start of an executing operation: a programmer's error.
    case refuse
  }

  enum FinishAction: Hashable {
    /// It came before the start, which will honour it.
    case keep
    /// The caller sees the operation to its end.
    case end
    /// The same, for one that is not to execute.
    case skip
    case ignore
  }

  enum CancelAction: Hashable {
    /// - Parameter skips: The caller sees the operation to its end without executing it.
    case announce(whileExecuting: Bool, skips: Bool)
    case ignore
  }

  /// Why an operation is cancelled.
  enum CancelReason {
    case none
    case failure(FailureReport)
    case timeout(OperationError)
  }

  /// What decided how the operation ends. The first event decides.
  enum Decision: Hashable, Sendable {
    case none
    case finish
    case cancellation
    case timeout
  }

  private(set) var phase: Phase = .pending
  private(set) var isCancelled = false
  private(set) var hasExecuted = false
  /// What went wrong, in order, with paths relative to the operation. If a timeout decided, the first failure is the
  /// timeout's, and the others are its causes: see ``AsyncOperation/failures(of:)``.
  private(set) var failures: [OperationFailure] = []
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

  /// It was cancelled or finished before it could execute.
  private var isEnded: Bool { isCancelled || isFinishKept }

  /// Nothing has come in between yet.
  var mayExecute: Bool { phase == .preparing && !isEnded }

  /// There is something left to do, and nobody has asked to stop.
  var mayGoOn: Bool { phase == .executing && !isCancelled }

  /// The one who prepares the operation goes a step further.
  ///
  /// - Returns: Whether it may. Otherwise it sees the operation to its end.
  mutating func proceed(to next: Phase) -> Bool {
    guard phase == .preparing else { misuse("Only an operation that is being prepared can proceed; it was \(phase).") }
    phase = isEnded ? .skipped : next
    if phase == .executing { hasExecuted = true }
    return phase == next
  }

  /// The conditions are met.
  ///
  /// - Returns: Whether there is something left to prepare. Otherwise somebody has ended the operation meanwhile.
  mutating func resume() -> Bool {
    guard phase == .evaluating else { return false }
    phase = .preparing
    return true
  }

  /// The first finish counts, wherever it comes from; the errors of later ones are not recorded.
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

  /// The first cancellation counts. Its reason is recorded unless a finish came before.
  ///
  /// - Parameter unlessStarted: Leaves an executing operation alone.
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

  /// Adds failures without ending anything: how a group collects what its members report. Too late once it is ending.
  mutating func record(_ report: FailureReport) -> Bool {
    switch phase {
    case .pending, .preparing, .evaluating, .executing, .skipped:
      append(report)
      return true
    case .ending, .finished: return false
    }
  }

  /// Asks for the right to end the operation without recording anything more. Granted once.
  mutating func end() -> Bool {
    switch phase {
    case .executing, .skipped:
      phase = .ending
      return true
    case .pending, .preparing, .evaluating, .ending, .finished: return false
    }
  }

  /// The end has been carried out: Foundation calls the operation finished.
  mutating func settle() {
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
