/// The state machine of an operation, as a value. The caller of an event carries out what it returns, after the lock.
///
/// ```
/// pending ──start──▶ (suspended ◀──▶ preparing) ──▶ executing ◀──▶ paused ──finish──▶ ending ──complete──▶ finished
///    └─start, cancelled or finished before─▶ skipped ──end──▶ ending
/// ```
struct OperationLifecycle {
  /// What an operation waits for without a thread, before its work begins or goes on.
  enum Wait: Hashable, Sendable {
    /// The start of its group, after which it enters the wait queues of its keys.
    case groupStart
    case dependencies
    /// Its keys.
    case keys
    /// Nothing but its start, by a queue, a group or a caller. The first phase of an operation.
    case slot
    case conditions
    case delay
  }

  enum Phase: Hashable, Sendable {
    case pending(Wait)
    /// Started, and waiting. The caller that cancels or finishes it carries out its end.
    case suspended(Wait)
    /// Being prepared on the thread that started or resumed it, which handles a cancellation or a finish.
    case preparing
    case executing
    case paused(Wait)
    /// Started, and cancelled or finished before, so that it does not execute.
    case skipped
    /// Exactly one caller is carrying out the end.
    case ending(afterExecution: Bool)
    case finished

    var wait: Wait? {
      switch self {
      case .pending(let wait), .suspended(let wait), .paused(let wait): wait
      case .preparing, .executing, .skipped, .ending, .finished: nil
      }
    }

    var isPending: Bool { if case .pending = self { true } else { false } }

    var isBlocked: Bool {
      switch self {
      case .pending(.groupStart), .pending(.dependencies), .pending(.keys): true
      case .pending(.slot), .pending(.conditions), .pending(.delay): false
      case .suspended, .preparing, .executing, .paused, .skipped, .ending, .finished: false
      }
    }

    var isExecuting: Bool {
      switch self {
      case .executing, .paused: true
      case .pending, .suspended, .preparing, .skipped, .ending, .finished: false
      }
    }

    var isBeforeExecution: Bool {
      switch self {
      case .pending, .suspended, .preparing: true
      case .executing, .paused, .skipped, .ending, .finished: false
      }
    }

    var isOver: Bool {
      switch self {
      case .pending, .suspended, .preparing, .executing, .paused, .skipped: false
      case .ending, .finished: true
      }
    }
  }

  /// The first of these events decides the outcome.
  enum Decision: Hashable, Sendable {
    case none
    case finish
    /// As ``finish``, and the operation was cancelled before its end.
    case finishBeforeCancellation
    case cancellation
    case timeout
  }

  private(set) var phase = Phase.pending(.slot)
  /// With paths relative to the operation. After a timeout, its failure is first, and the others are its causes.
  private(set) var failures: [OperationFailure] = []
  /// Whether a finish came while the operation was pending or being prepared, so that it does not execute.
  private(set) var isFinishKept = false
  private(set) var decision: Decision = .none

  /// Starts the operation, unless it has been ended. Returns false if it has been started before.
  mutating func start(as first: Phase = .executing) -> Bool {
    guard phase.isPending else { return false }
    phase = isDecided ? .skipped : first
    return true
  }

  var isCancelled: Bool { decision != .none && decision != .finish }

  /// Whether the operation, which has not executed, was cancelled or finished.
  var isDecided: Bool { decision != .none }

  var hasFailed: Bool { !failures.isEmpty }

  var mayExecute: Bool { phase == .preparing && !isDecided }

  var canContinue: Bool { phase == .executing && !isCancelled }

  mutating func wait(for next: Wait) {
    switch phase {
    case .pending: phase = .pending(next)
    case .paused: phase = .paused(next)
    case .suspended, .preparing, .executing, .skipped, .ending, .finished:
      misuse("Only a pending or paused operation begins another wait; it was \(phase).")
    }
  }

  /// Returns whether a prepared operation may proceed. Otherwise the caller must finish it without executing it.
  mutating func proceed(to next: Phase) -> Bool {
    guard phase == .preparing else { misuse("Only an operation that is being prepared can proceed; it was \(phase).") }
    phase = isDecided ? .skipped : next
    return phase == next
  }

  /// Pauses the execution, unless the operation was cancelled or another caller has ended it.
  mutating func pause() -> Bool {
    guard canContinue else { return false }
    phase = .paused(.delay)
    return true
  }

  /// Ends a wait of a started operation, unless another caller has ended the operation.
  mutating func resume(after wait: Wait) -> Bool {
    switch phase {
    case .suspended(wait): phase = .preparing
    case .paused(wait): phase = .executing
    case .pending, .suspended, .preparing, .executing, .paused, .skipped, .ending, .finished: return false
    }
    return true
  }

  // The next two methods return the interrupted phase. If the operation was suspended, the caller carries out the
  // end. If it executed, the caller of a finish carries out the end, and that of a cancellation notifies the work.
  // Otherwise, the thread that starts or prepares the operation carries out the end.

  /// Finishes the operation. The first finish counts; nil is returned for others, whose errors are not recorded.
  mutating func finish(_ report: FailureReport? = nil) -> Phase? {
    let interrupted = phase
    switch phase {
    case .pending, .preparing:
      if isFinishKept { return nil }
      isFinishKept = true
    case .suspended: phase = .skipped
    case .executing, .paused: phase = .ending(afterExecution: true)
    case .skipped, .ending, .finished: return nil
    }
    if let report { append(report) }
    if decision == .none { decision = .finish }
    return interrupted
  }

  /// Cancels the operation. Nil if that has no effect. A reason after a finish is not recorded.
  mutating func cancel(_ reason: FailureReport? = nil, as decision: Decision = .cancellation) -> Phase? {
    if isCancelled || phase.isOver { return nil }
    if self.decision == .finish {
      self.decision = .finishBeforeCancellation
    } else {
      self.decision = decision
      let earlier = failures
      if decision == .timeout { failures = [] }
      if let reason { append(reason) }
      if decision == .timeout { failures += earlier }
    }
    let interrupted = phase
    if case .suspended = phase { phase = .skipped }
    return interrupted
  }

  /// Adds failures without ending the operation, unless it is over. A group collects those of its members this way.
  mutating func record(_ report: FailureReport) { if !phase.isOver { append(report) } }

  /// Claims the end, and returns whether the operation has executed. Nil if the caller must not carry out the end.
  mutating func end() -> Bool? {
    guard phase.isExecuting || phase == .skipped else { return nil }
    let hasExecuted = phase != .skipped
    phase = .ending(afterExecution: hasExecuted)
    return hasExecuted
  }

  /// Records that Foundation considers the operation finished.
  mutating func complete() {
    guard case .ending = phase else {
      misuse("The lifecycle completes once, and only after it has been ended; it was \(phase).")
    }
    phase = .finished
  }

  private mutating func append(_ report: FailureReport) {
    failures += isCancelled ? report.failuresAfterCancellation : report.failures
  }
}
