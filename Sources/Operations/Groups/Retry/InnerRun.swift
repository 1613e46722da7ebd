import Foundation

/// One run of an operation, with its dependencies, inside another operation that is not a group.
///
/// The operation runs in a private group, which the outer operation encloses. Lookups through enclosing operations
/// therefore continue from the group to the outer operation.
final class InnerRun<Output: Sendable>: OperationStarter, @unchecked Sendable {
  private let work: AnyOutputOperation<Output>
  private let group: GroupOperation
  private let supervisor: InnerSupervisor
  private let whenFinished: @Sendable (InnerOutcome<Output>) -> Void

  /// Creates a run of `work` inside `outer`.
  ///
  /// - Parameter group: A private group that already contains the operation.
  init(
    _ work: AnyOutputOperation<Output>,
    in group: GroupOperation,
    inside outer: AsyncOperation,
    _ whenFinished: @escaping @Sendable (InnerOutcome<Output>) -> Void
  ) {
    self.work = work
    self.whenFinished = whenFinished
    self.group = group
    // Adds the dependencies only now, because they may be added only if the operation was.
    group.addGraph(endingIn: work.operation)
    group.qualityOfService = outer.qualityOfService
    // Otherwise every operation inside would search all enclosing operations for the clock.
    group.clock = outer.clock
    supervisor = InnerSupervisor(of: outer)
    super.init()
    _ = group.core.withLock { $0.claim(for: supervisor, index: 0) }
  }

  /// Runs the operation. If `outer` has finished or been cancelled, the operation is cancelled first.
  func start(for outer: AsyncOperation) {
    let (isNeeded, previous) = outer.core.withLock { core -> (Bool, AsyncOperation?) in
      guard core.lifecycle.canContinue else { return (false, nil) }
      return (true, core.makeExtras().exchange(\.inner, group))
    }
    withExtendedLifetime(previous) {}
    if !isNeeded { group.cancel() }
    outer.trace?.send(.gained(group.operations))
    _ = group.startAsMember(by: self)
  }

  override func memberDidFinish(_ member: AsyncOperation, index: Int, failed: Bool, holdsSlot: Bool) {
    whenFinished(outcome)
  }

  /// The outcome of the operation. If the operation had no input, the outcome is the failure that caused this.
  private var outcome: InnerOutcome<Output> {
    let outcome = InnerOutcome(of: work)
    switch outcome.result {
    case .failure(OperationError.Code.inputUnavailable) where !group.failures.isEmpty:
      let primary = AggregateError(group.failures).primary
      // Drops the group's name, which is the name of the enclosing operation.
      let failure = OperationFailure(path: Array(primary.path.dropFirst()), error: primary.error)
      return InnerOutcome(.failure(primary.error), failures: FailureReport(failures: [failure]))
    case .success, .failure: return outcome
    }
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
    let group = GroupOperation([work.operation]).named(displayName)
    InnerRun(work, in: group, inside: self, body).start(for: self)
  }

  /// Runs an operation inside this one if it is in no queue or group and has not started.
  ///
  /// - Returns: Whether the operation runs inside this one.
  func runInsideIfFree<Output: Sendable>(
    _ work: AnyOutputOperation<Output>,
    then body: @escaping @Sendable (InnerOutcome<Output>) -> Void
  ) -> Bool {
    // Avoids creating a group in most cases.
    guard work.operation.isFree else { return false }
    let group = GroupOperation().named(displayName)
    guard group.addIfFree(work.operation) else { return false }
    InnerRun(work, in: group, inside: self, body).start(for: self)
    return true
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

/// The supervisor that connects an inner run to its enclosing operation.
final class InnerSupervisor: OperationSupervisor, @unchecked Sendable {
  private struct Outer {
    weak var operation: AsyncOperation?
  }

  private let outer: Locked<Outer>

  init(of operation: AsyncOperation) { outer = Locked(Outer(operation: operation)) }

  override var supervisedGroup: AsyncOperation? { outer.withLock { $0.operation } }
}
