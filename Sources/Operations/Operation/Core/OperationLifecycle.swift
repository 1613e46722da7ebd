/// The state machine of an operation, as a value. The caller of an event carries out what it returns, after the lock.
///
/// ```
/// pending ──start──▶ (preparing ◀──▶ evaluating) ──▶ executing ──finish──▶ ending ──complete──▶ finished
///    └─start, cancelled or finished before─▶ skipped ──end──▶ ending
/// ```
///
/// An operation with inputs, conditions or a permit is prepared. It holds no thread while its conditions are evaluated.
struct OperationLifecycle {
  enum Phase: Hashable, Sendable {
    case pending
    /// Being prepared on the thread that started it, which handles a cancellation or a finish.
    case preparing
    /// Waiting for its conditions or its permit. The caller that cancels or finishes it carries out its end.
    case evaluating
    case executing
    /// Started, and cancelled or finished before, so that it does not execute.
    case skipped
    /// Exactly one caller is carrying out the end.
    case ending(afterExecution: Bool)
    case finished

    var isOver: Bool {
      switch self {
      case .pending, .preparing, .evaluating, .executing, .skipped: false
      case .ending, .finished: true
      }
    }
  }

  /// What a finish or a cancellation has interrupted.
  enum Interruption {
    /// The thread that starts or prepares the operation carries out the end.
    case start
    /// The caller must carry out the end of an operation that does not execute.
    case evaluation
    /// The caller of a finish must carry out the end, and the caller of a cancellation must notify the work.
    case execution
  }

  /// The first of these events decides the outcome.
  enum Decision: Hashable, Sendable {
    case none
    case finish
    case cancellation
    case timeout
  }

  private(set) var phase: Phase = .pending
  private(set) var isCancelled = false
  /// With paths relative to the operation. After a timeout, its failure is first, and the others are its causes.
  private(set) var failures: [OperationFailure] = []
  /// Whether a finish came before the execution.
  private(set) var isFinishKept = false
  private(set) var decision: Decision = .none
  /// Whether a failure arrived as an `AggregateError`.
  private(set) var hasPaths = false

  /// Starts the operation: see ``phase`` for what follows. Returns false if it has been started before.
  mutating func start(preparing: Bool = false) -> Bool {
    guard phase == .pending else { return false }
    phase = isEnded ? .skipped : preparing ? .preparing : .executing
    return true
  }

  private var isEnded: Bool { isCancelled || isFinishKept }

  var hasFailed: Bool { !failures.isEmpty }

  var mayExecute: Bool { phase == .preparing && !isEnded }

  var canContinue: Bool { phase == .executing && !isCancelled }

  /// Returns whether a prepared operation may proceed. Otherwise the caller must finish it without executing it.
  mutating func proceed(to next: Phase) -> Bool {
    guard phase == .preparing else { misuse("Only an operation that is being prepared can proceed; it was \(phase).") }
    phase = isEnded ? .skipped : next
    return phase == next
  }

  /// Resumes the preparation, unless another caller has ended the operation.
  mutating func resume() -> Bool {
    guard phase == .evaluating else { return false }
    phase = .preparing
    return true
  }

  /// Finishes the operation. The first finish counts; nil is returned for others, whose errors are not recorded.
  mutating func finish(_ report: FailureReport? = nil) -> Interruption? {
    let interruption: Interruption
    switch phase {
    case .pending, .preparing:
      if isFinishKept { return nil }
      isFinishKept = true
      interruption = .start
    case .evaluating:
      phase = .skipped
      interruption = .evaluation
    case .executing:
      phase = .ending(afterExecution: true)
      interruption = .execution
    case .skipped, .ending, .finished: return nil
    }
    if let report { append(report) }
    if decision == .none { decision = .finish }
    return interruption
  }

  /// Cancels the operation. The first cancellation counts; nil is returned for others. Its reason is recorded unless a
  /// finish came before.
  mutating func cancel(
    _ reason: FailureReport? = nil,
    as decision: Decision = .cancellation,
    unlessStarted: Bool = false
  ) -> Interruption? {
    if isCancelled || phase.isOver || (unlessStarted && phase == .executing) { return nil }
    isCancelled = true
    if self.decision == .none {
      self.decision = decision
      let earlier = failures
      if decision == .timeout { failures = [] }
      if let reason { append(reason) }
      if decision == .timeout { failures += earlier }
    }
    switch phase {
    case .executing: return .execution
    case .evaluating:
      phase = .skipped
      return .evaluation
    case .pending, .preparing, .skipped, .ending, .finished: return .start
    }
  }

  /// Adds failures without ending the operation, unless it is over. A group collects those of its members this way.
  mutating func record(_ report: FailureReport) -> Bool {
    if phase.isOver { return false }
    append(report)
    return true
  }

  /// Claims the end, and returns whether the operation has executed. Nil if the caller must not carry out the end.
  mutating func end() -> Bool? {
    guard phase == .executing || phase == .skipped else { return nil }
    let hasExecuted = phase == .executing
    phase = .ending(afterExecution: hasExecuted)
    return hasExecuted
  }

  /// Records that Foundation considers the operation finished.
  mutating func complete() {
    guard case .ending = phase else {
      misuse("The lifecycle settles once, and only after it has been ended; it was \(phase).")
    }
    phase = .finished
  }

  private mutating func append(_ report: FailureReport) {
    let counting = isCancelled ? report.failuresAfterCancellation : report.failures
    if report.hasPaths, !counting.isEmpty { hasPaths = true }
    failures += counting
  }
}
