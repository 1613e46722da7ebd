/// Where an operation is in its life, as a value: what happens, and what is to be done about it.
///
/// Every event is a mutating function that returns an action; whoever holds the value takes the action under its lock
/// and carries it out when the lock is released. There is no effect in here, so a test can walk every sequence.
///
/// ```
/// pending ──start──▶ executing ──finish──▶ ending ──settle──▶ finished
///    └─start, cancelled or finished before─▶ skipped ──end──▶ ending
/// ```
struct OperationLifecycle {
  enum Phase: Hashable, Sendable {
    case pending
    case executing
    /// Started, but not to execute: it was cancelled or finished before.
    case skipped
    /// One caller has the right, and the duty, to see the operation through to its end.
    case ending
    case finished
  }

  enum StartAction: Hashable {
    case execute
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
    case ignore
  }

  enum CancelAction: Hashable {
    case announce(whileExecuting: Bool)
    case ignore
  }

  private(set) var phase: Phase = .pending
  private(set) var isCancelled = false
  private(set) var hasExecuted = false
  /// What went wrong, in order; the paths are relative to the operation.
  private(set) var failures: [OperationFailure] = []
  private var isFinishKept = false

  mutating func start() -> StartAction {
    switch phase {
    case .pending:
      if isCancelled || isFinishKept {
        phase = .skipped
        return .skip
      }
      phase = .executing
      hasExecuted = true
      return .execute
    case .executing, .skipped, .ending: return .refuse
    case .finished: return .ignore
    }
  }

  /// The first finish counts, wherever it comes from; the errors of later ones are not recorded.
  mutating func finish(_ errors: [any Error]) -> FinishAction {
    switch phase {
    case .pending:
      if isFinishKept { return .ignore }
      isFinishKept = true
      append(errors)
      return .keep
    case .executing:
      append(errors)
      phase = .ending
      return .end
    case .skipped, .ending, .finished: return .ignore
    }
  }

  mutating func cancel(_ error: (any Error)?) -> CancelAction {
    switch phase {
    case .pending, .executing, .skipped:
      if let error { append([error]) }
      if isCancelled { return .ignore }
      isCancelled = true
      return .announce(whileExecuting: phase == .executing)
    case .ending, .finished: return .ignore
    }
  }

  /// Adds failures without ending anything: how a group collects what its members report. Too late once it is ending.
  mutating func record(_ newFailures: [OperationFailure]) -> Bool {
    switch phase {
    case .pending, .executing, .skipped:
      failures.append(contentsOf: newFailures)
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
    case .pending, .ending, .finished: return false
    }
  }

  /// The end has been carried out: Foundation calls the operation finished.
  mutating func settle() {
    switch phase {
    case .ending: phase = .finished
    case .pending, .executing, .skipped, .finished:
      misuse("The lifecycle settles once, and only after it has been ended; it was \(phase).")
    }
  }

  private mutating func append(_ errors: [any Error]) {
    for error in errors { failures.append(OperationFailure(path: [], error: error)) }
  }
}
