@testable import Operations

/// A lifecycle, and what those who carry out its actions have done.
struct LifecycleWorld: InterleavedWorld {
  /// What kind of operation it is: what comes between its start and its execution.
  struct Kind: Hashable {
    var isPrepared = false
    /// Nil if it has no conditions.
    var meetsConditions: Bool?
    /// It has lost its keys when it begins, and gets them again.
    var isAdmittedAgain = false
    /// Its inputs are missing.
    var lacksInput = false
    var hasObservers = false
    var hasTimeout = false
    var finishesInside = false

    var isSimple: Bool { self == Self() || self == Self(isPrepared: true) }

    var isPreparing: Bool { isPrepared || meetsConditions != nil || isAdmittedAgain || lacksInput }
  }

  struct Deeds: Hashable {
    var starts = 0
    /// Somebody was granted the execution, or called `execute()`.
    var executions = 0
    var calls = 0
    var ends = 0
    var isFinished = false
    var settlements = 0
    var announcements = 0
    /// Cancelled or finished, and that counted.
    var isStopped = false
    /// Somebody wanted it to be finished after it had been started, or before.
    var isWantedFinished = false
    /// That counted.
    var finishes = 0
    var errorsAtEnd: Int?
    /// The first event that decides how the operation ends.
    var decision = OperationLifecycle.Decision.none
  }

  struct Fingerprint: Hashable {
    let phase: OperationLifecycle.Phase
    let isCancelled: Bool
    let hasExecuted: Bool
    let isFinishKept: Bool
    let failures: Int
    let deeds: Deeds
  }

  let kind: Kind
  var lifecycle = OperationLifecycle()
  var deeds = Deeds()
  private(set) var breach: String?

  init(_ kind: Kind) { self.kind = kind }

  var fingerprint: Fingerprint {
    Fingerprint(
      phase: lifecycle.phase,
      isCancelled: lifecycle.isCancelled,
      hasExecuted: lifecycle.hasExecuted,
      isFinishKept: lifecycle.isFinishKept,
      failures: lifecycle.failures.count,
      deeds: deeds
    )
  }

  mutating func promise(_ isKept: Bool, _ breach: String) {
    if !isKept, self.breach == nil { self.breach = breach }
  }

  mutating func decide(_ decision: OperationLifecycle.Decision) {
    if deeds.decision == .none { deeds.decision = decision }
  }

  /// What has to be true in every state.
  mutating func check() {
    promise(deeds.executions <= 1 && deeds.calls <= deeds.executions, "it executed twice")
    promise(deeds.ends <= 1, "two have the right to end it")
    promise(deeds.settlements <= deeds.ends, "it settled twice")
    promise(deeds.announcements <= 1, "it was cancelled twice")
    promise(deeds.finishes <= 1, "a second finish counted")
    promise(lifecycle.hasExecuted == (deeds.executions == 1), "it does not know whether it has executed")
    promise(lifecycle.isCancelled == (deeds.announcements == 1), "a cancellation was not announced")
    let hasEnded = lifecycle.phase == .ending || lifecycle.phase == .finished
    promise(hasEnded == (deeds.ends == 1), "it ends, and nobody has the duty")
    promise(lifecycle.decision == deeds.decision, "the first event did not decide")
    let isTimeoutFirst = lifecycle.failures.first.map { OperationError.Code.timedOut ~= $0.error } ?? false
    promise(
      (lifecycle.decision == .timeout) == isTimeoutFirst,
      "a timeout is not the first failure, or is one too many"
    )
    if let errors = deeds.errorsAtEnd {
      promise(errors == lifecycle.failures.count, "its errors changed after its end")
    }
  }

  func breachAtEnd(waiting: Int) -> String? {
    if waiting > 0 { return "somebody waits for ever" }
    switch lifecycle.phase {
    case .finished: return deeds.isFinished && deeds.settlements == 1 ? nil : "it has not settled"
    case .pending: return deeds.starts == 0 ? nil : "it never begins"
    case .executing: return deeds.isWantedFinished || deeds.calls == 0 ? "it never ends" : nil
    case .preparing, .evaluating, .skipped, .ending: return "it stays \(lifecycle.phase) for ever"
    }
  }
}
