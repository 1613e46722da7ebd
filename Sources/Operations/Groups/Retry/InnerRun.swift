import Foundation

/// One run of a private operation inside another operation that is not a group.
///
/// The private operation is a group of the operations that run inside, or it waits for an operation that runs elsewhere.
/// Lookups through enclosing operations continue from the private operation to the outer one.
final class InnerRun: OperationStarter, @unchecked Sendable {
  /// The supervisor and the run retain each other until the private operation has finished.
  private let supervisor: InnerSupervisor
  private let whenFinished: @Sendable () -> Void

  private init(inside outer: AsyncOperation, _ whenFinished: @escaping @Sendable () -> Void) {
    supervisor = InnerSupervisor(of: outer)
    self.whenFinished = whenFinished
    super.init()
  }

  /// Runs `inner` as soon as its dependencies have finished. If `outer` has finished or been cancelled, `inner` is
  /// cancelled first.
  static func start(
    _ inner: AsyncOperation,
    inside outer: AsyncOperation,
    _ whenFinished: @escaping @Sendable () -> Void
  ) {
    let run = InnerRun(inside: outer, whenFinished)
    run.supervisor.set(run)
    _ = inner.core.withLock { $0.claim(for: run.supervisor, index: 0) }
    let (isNeeded, previous) = outer.core.withLock { core -> (Bool, AsyncOperation?) in
      guard core.lifecycle.canContinue else { return (false, nil) }
      return (true, core.makeExtras().exchange(\.inner, inner))
    }
    withExtendedLifetime(previous) {}
    if !isNeeded { inner.cancel() }
    outer.trace?.send(.gained(inner.members))
    _ = inner.startAsMember(by: run)
  }

  override func memberDidFinish(_ member: AsyncOperation, index: Int, failed: Bool, holdsSlot: Bool) {
    supervisor.set(nil)
    whenFinished()
  }
}

extension AsyncOperation {
  /// Runs an operation, with its dependencies that are in no queue or group, inside this one.
  ///
  /// `body` is called when the operation has finished, even if it was cancelled with this one.
  func runInside<Output: Sendable>(
    _ work: AnyOutputOperation<Output>,
    then body: @escaping @Sendable (InnerOutcome<Output>) -> Void
  ) {
    run(work, in: GroupOperation([work.operation]), then: body)
  }

  /// Runs an operation inside this one or, if it is in a queue or group or has been started, waits for it.
  func runInsideOrFollow<Output: Sendable>(
    _ work: AnyOutputOperation<Output>,
    then body: @escaping @Sendable (InnerOutcome<Output>) -> Void
  ) {
    if work.operation.isFree {
      let group = GroupOperation()
      // Another thread may have just added the operation elsewhere.
      if group.addIfFree(work.operation) { return run(work, in: group, then: body) }
    }
    let wait = AsyncOperation().waits(for: work.operation)
    InnerRun.start(wait, inside: self) {
      let cancelled = InnerOutcome<Output>(.failure(CancellationError()), failures: FailureReport([]))
      body(wait.isCancelled ? cancelled : InnerOutcome(of: work))
    }
  }

  private func run<Output: Sendable>(
    _ work: AnyOutputOperation<Output>,
    in group: GroupOperation,
    then body: @escaping @Sendable (InnerOutcome<Output>) -> Void
  ) {
    // Adds the dependencies only now, because they may be added only if the operation was.
    group.addGraph(endingIn: work.operation)
    group.name = displayName
    group.qualityOfService = qualityOfService
    // Otherwise every operation inside would search all enclosing operations for the clock.
    group.clock = clock
    InnerRun.start(group, inside: self) { body(InnerOutcome(of: work, in: group)) }
  }

  /// Continues with `work` after a delay, at the operation's place.
  ///
  /// - Parameter next: The name of the work, for a stall report.
  func `continue`(after delay: Duration, before next: String, with work: @escaping @Sendable () -> Void) {
    if delay > .zero {
      pause(for: delay, before: next, then: work)
    } else if keepPlace().isParticular {
      keepPlace().run(work)
    } else {
      // Avoids recursion, because the work may end inside this call.
      Trampoline.run(work)
    }
  }
}

/// The outcome of an operation that another operation ran or followed.
struct InnerOutcome<Output: Sendable>: Sendable {
  /// The value that awaiting the operation returns, or the error that it throws.
  let result: Result<Output, any Error>
  /// The operation's failures, with paths that begin with its name.
  let failures: FailureReport

  init(_ result: Result<Output, any Error>, failures: FailureReport) {
    self.result = result
    self.failures = failures
  }

  init(of work: AnyOutputOperation<Output>) {
    result = work.result
    failures = work.operation.failureReport(for: result).below(work.operation.displayName)
  }

  /// Creates the outcome of an operation that ran in a private group. If the operation had no input, the outcome is the
  /// failure that caused this.
  init(of work: AnyOutputOperation<Output>, in group: GroupOperation) {
    self.init(of: work)
    guard case .failure(OperationError.Code.inputUnavailable) = result, !group.failures.isEmpty else { return }
    let primary = AggregateError(group.failures).primary
    // Drops the group's name, which is the name of the enclosing operation.
    let failure = OperationFailure(path: Array(primary.path.dropFirst()), error: primary.error)
    self.init(.failure(primary.error), failures: FailureReport(failures: [failure]))
  }
}

extension AsyncOperation {
  /// Returns the failures of an operation that finished with `result`.
  fileprivate func failureReport<Output>(for result: Result<Output, any Error>) -> FailureReport {
    let failures = ownFailures
    guard failures.isEmpty, case .failure(let error) = result else {
      return FailureReport(
        failures: failures,
        hasPaths: core.withLock { $0.lifecycle.hasPaths && $0.lifecycle.decision != .timeout }
      )
    }
    return FailureReport([error])
  }
}

/// The supervisor of a private operation, which connects it to its outer operation.
final class InnerSupervisor: OperationSupervisor, @unchecked Sendable {
  private struct State {
    weak var outer: AsyncOperation?
    var run: InnerRun?
  }

  private let state: Locked<State>

  init(of outer: AsyncOperation) { state = Locked(State(outer: outer)) }

  func set(_ run: InnerRun?) {
    let previous = state.withLock { state in
      defer { state.run = run }
      return state.run
    }
    withExtendedLifetime(previous) {}
  }

  override var supervisedGroup: AsyncOperation? { state.withLock { $0.outer } }

  override func memberIsReady(_ member: AsyncOperation) {
    guard let run = state.withLock({ $0.run }) else { return }
    // Avoids recursion, because the outer operation may finish, for which another operation may wait, and so on.
    Trampoline.run { _ = member.startAsMember(by: run) }
  }
}
