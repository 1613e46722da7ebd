import Foundation

/// One run of a private operation inside another operation that is not a group: of a group of the operations that run
/// inside, or of a wait for an operation that runs elsewhere.
final class InnerRun: OperationSupervisor, @unchecked Sendable {
  /// Never changes, but `weak let` requires Swift 6.3 (SE-0481).
  private weak var outer: AsyncOperation?
  private let whenFinished: @Sendable () -> Void
  /// The run retains itself until the private operation has finished, because that does not count its supervisor.
  private let itself = Locked<InnerRun?>(nil)

  private init(inside outer: AsyncOperation, _ whenFinished: @escaping @Sendable () -> Void) {
    self.outer = outer
    self.whenFinished = whenFinished
    super.init()
  }

  /// Runs `inner` when its dependencies have finished. It is cancelled first if `outer` has finished or was cancelled.
  static func start(
    _ inner: AsyncOperation,
    inside outer: AsyncOperation,
    _ whenFinished: @escaping @Sendable () -> Void
  ) {
    let run = InnerRun(inside: outer, whenFinished)
    run.itself.withLock { $0 = run }
    _ = inner.core.withLock { $0.claim(for: run, index: 0) }
    let (isNeeded, previous) = outer.core.withLock { core -> (Bool, AsyncOperation?) in
      guard core.lifecycle.canContinue else { return (false, nil) }
      return (true, core.makeExtras().exchange(\.inner, inner))
    }
    withExtendedLifetime(previous) {}
    if !isNeeded { inner.cancel() }
    if let priority = outer.lentPriority { inner.escalatePriority(to: priority) }
    outer.trace?.send(.gained(inner.members))
    _ = inner.startAsMember(by: run)
  }

  /// Lookups through enclosing operations continue at the outer operation.
  override var supervisedGroup: AsyncOperation? { outer }

  override func memberIsReady(_ member: AsyncOperation, number: Int?, isCalled: Bool) {
    // Avoids recursion, because the outer operation may finish, for which another operation may wait, and so on.
    Trampoline.run { _ = member.startAsMember(by: self) }
  }

  override func workContinues(_ work: ContinuingWork) {
    outer?.core.withLock { $0.supervisor }?.workContinues(work)
  }

  override func memberDidFinish(_ member: AsyncOperation, _ end: OperationCore.End) {
    for work in end.continuingWork(of: member) { workContinues(work) }
    itself.withLock { $0 = nil }
    whenFinished()
  }
}

extension AsyncOperation {
  /// Runs an operation, with its dependencies that are in no queue or group, inside this one.
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
      body(wait.isCancelled ? InnerOutcome(result: .failure(CancellationError())) : InnerOutcome(of: work))
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
    group.qualityOfService = keepPlace().quality
    // Otherwise every operation inside would search all enclosing operations for the clock.
    group.clock = clock
    InnerRun.start(group, inside: self) { body(InnerOutcome(of: work, in: group)) }
  }

  /// Continues with `work`, called `next` in a stall report, after the work of the former `engine` and a delay.
  func `continue`(
    behind engine: OperationSupervisor?,
    after delay: Duration,
    before next: String,
    with work: @escaping @Sendable () -> Void
  ) {
    if let engine {
      return engine.whenDrained { self.continue(behind: nil, after: delay, before: next, with: work) }
    }
    // Each attempt of an operation with keys takes them anew.
    if delay > .zero || core.withLock({ $0.turn != nil }) {
      pause(for: delay, before: next, then: work)
    } else if keepPlace().isParticular {
      keepPlace().run(work)
    } else {
      // Avoids recursion, because the work may end inside this call.
      Trampoline.run(work)
    }
  }
}

struct InnerOutcome<Output: Sendable>: Sendable {
  var result: Result<Output, any Error>
  /// The paths begin with the operation's name.
  var failures = FailureReport([])
  /// The engine of the private group, whose work may outlast it.
  var engine: OperationSupervisor?
}

extension InnerOutcome {
  /// If a producer in the private group failed, the outcome is the failure that caused this.
  init(of work: AnyOutputOperation<Output>, in group: GroupOperation? = nil) {
    let result = work.result
    let failures = work.operation.failureReport(for: result).below(work.operation.displayName)
    self.init(result: result, failures: failures, engine: group?.engineOfMembers)
    guard case .failure(let error as OperationError) = result, error.isOfFailedProducer, let group,
      !group.failures.isEmpty
    else { return }
    let primary = AggregateError(group.failures).primary
    // Drops the group's name, which is the name of the enclosing operation.
    let failure = OperationFailure(path: Array(primary.path.dropFirst()), error: primary.error)
    (self.result, self.failures) = (.failure(primary.error), FailureReport(failures: [failure]))
  }
}

extension AsyncOperation {
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
