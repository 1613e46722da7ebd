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

  private(set) var phase: Phase = .pending
  private(set) var isCancelled = false
  private(set) var hasExecuted = false
  /// What went wrong, in order; the paths are relative to the operation.
  private(set) var failures: [OperationFailure] = []
  private(set) var isFinishKept = false

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
  mutating func finish(_ errors: [any Error]) -> FinishAction {
    switch phase {
    case .pending, .preparing:
      if isFinishKept { return .ignore }
      isFinishKept = true
      append(errors)
      return .keep
    case .evaluating:
      append(errors)
      phase = .skipped
      return .skip
    case .executing:
      append(errors)
      phase = .ending
      return .end
    case .skipped, .ending, .finished: return .ignore
    }
  }

  mutating func cancel(_ error: (any Error)?) -> CancelAction {
    switch phase {
    case .pending, .preparing, .evaluating, .executing, .skipped:
      if let error { append([error]) }
      if isCancelled { return .ignore }
      isCancelled = true
      if phase == .evaluating {
        phase = .skipped
        return .announce(whileExecuting: false, skips: true)
      }
      return .announce(whileExecuting: phase == .executing, skips: false)
    case .ending, .finished: return .ignore
    }
  }

  /// Adds failures without ending anything: how a group collects what its members report. Too late once it is ending.
  mutating func record(_ newFailures: [OperationFailure]) -> Bool {
    switch phase {
    case .pending, .preparing, .evaluating, .executing, .skipped:
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

  private mutating func append(_ errors: [any Error]) {
    for error in errors { failures.append(OperationFailure(path: [], error: error)) }
  }
}
