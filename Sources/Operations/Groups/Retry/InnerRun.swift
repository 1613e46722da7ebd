import Foundation

/// An operation, with what it waits for, that runs inside another one, which is no group.
///
/// It runs as the only member of a group of its own, whose outer operation is the one it works for, so that what is
/// asked of the operations around it finds the way.
final class InnerRun<Output: Sendable>: OperationStarter, @unchecked Sendable {
  private let work: AnyOutputOperation<Output>
  private let group: GroupOperation
  private let supervisor: InnerSupervisor
  private let whenFinished: @Sendable (InnerOutcome<Output>) -> Void

  /// - Parameter group: One of its own, which has taken the operation.
  init(
    _ work: AnyOutputOperation<Output>,
    in group: GroupOperation,
    inside outer: AsyncOperation,
    _ whenFinished: @escaping @Sendable (InnerOutcome<Output>) -> Void
  ) {
    self.work = work
    self.whenFinished = whenFinished
    self.group = group
    // The dependencies come second: they are taken only together with the operation.
    group.addGraph(endingIn: work.operation)
    group.qualityOfService = outer.qualityOfService
    // Or everything that runs inside, which may be far in, would look for it all the way out.
    group.clock = outer.clock
    supervisor = InnerSupervisor(of: outer)
    super.init()
    _ = group.core.withLock { $0.claim(for: supervisor, index: 0) }
  }

  /// Runs the operation, unless `outer` has been ended or cancelled.
  func start(for outer: AsyncOperation) {
    let (isNeeded, previous) = outer.core.withLock { core -> (Bool, AsyncOperation?) in
      guard core.lifecycle.mayGoOn else { return (false, nil) }
      return (true, core.makeExtras().exchange(\.inner, group))
    }
    withExtendedLifetime(previous) {}
    if !isNeeded { group.cancel() }
    outer.trace?.operationGains(group.operations)
    _ = group.startAsMember(by: self)
  }

  override func memberDidFinish(_ member: AsyncOperation, index: Int, failed: Bool, holdsSlot: Bool) {
    whenFinished(outcome)
  }

  /// How the operation ended. If it had no input, the cause of that.
  private var outcome: InnerOutcome<Output> {
    let outcome = InnerOutcome(of: work)
    switch outcome.result {
    case .failure(OperationError.Code.inputUnavailable) where !group.failures.isEmpty:
      let primary = AggregateError(group.failures).primary
      // The first name is the group's, which is that of the operation around it.
      let failure = OperationFailure(path: Array(primary.path.dropFirst()), error: primary.error)
      return InnerOutcome(.failure(primary.error), failures: FailureReport(failures: [failure]))
    case .success, .failure: return outcome
    }
  }
}

extension AsyncOperation {
  /// Runs an operation, with its dependencies that are in no queue or group, inside this one. It is cancelled with this
  /// one, and `body` is then still called.
  func runInside<Output: Sendable>(
    _ work: AnyOutputOperation<Output>,
    then body: @escaping @Sendable (InnerOutcome<Output>) -> Void
  ) {
    let group = GroupOperation([work.operation]).named(displayName)
    InnerRun(work, in: group, inside: self, body).start(for: self)
  }

  /// Runs an operation inside this one if it is in no queue or group and has not started. Otherwise returns false.
  func runInsideIfFree<Output: Sendable>(
    _ work: AnyOutputOperation<Output>,
    then body: @escaping @Sendable (InnerOutcome<Output>) -> Void
  ) -> Bool {
    // Usually that is known before a group is created for it.
    guard work.operation.isFree else { return false }
    let group = GroupOperation().named(displayName)
    guard group.addIfFree(work.operation) else { return false }
    InnerRun(work, in: group, inside: self, body).start(for: self)
    return true
  }
}

/// How an operation that another one ran, or followed, ended.
struct InnerOutcome<Output: Sendable>: Sendable {
  /// What awaiting the operation returns or throws.
  let result: Result<Output, any Error>
  /// Its failures, with paths that begin with its name.
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
  /// The failures of an operation that ended with `result`.
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

/// Says what an inner run runs inside of.
final class InnerSupervisor: OperationSupervisor, @unchecked Sendable {
  private struct Outer {
    weak var operation: AsyncOperation?
  }

  private let outer: Locked<Outer>

  init(of operation: AsyncOperation) { outer = Locked(Outer(operation: operation)) }

  override var supervisedGroup: AsyncOperation? { outer.withLock { $0.operation } }
}
