import Foundation

/// An operation, with what it waits for, that runs inside another one, which is no group.
///
/// It runs as the only member of a group of its own, whose outer operation is the one it works for, so that what is
/// asked of the operations around it finds the way.
final class InnerRun<Output: Sendable>: OperationStarter, @unchecked Sendable {
  private let operation: any OutputOperation<Output>
  private let group: GroupOperation
  private let supervisor: InnerSupervisor
  private let whenFinished: @Sendable (Result<Output, any Error>) -> Void

  /// - Parameter group: One of its own, which has taken the operation.
  init(
    _ operation: some OutputOperation<Output>,
    in group: GroupOperation,
    inside outer: AsyncOperation,
    _ whenFinished: @escaping @Sendable (Result<Output, any Error>) -> Void
  ) {
    self.operation = operation
    self.whenFinished = whenFinished
    self.group = group
    // What the operation waits for comes second: who has not got the operation does not get that.
    group.addGraph(endingIn: operation)
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

  /// How the operation ended. If it did because it had no input, what that was due to.
  private var outcome: Result<Output, any Error> {
    let result = operation.result ?? .failure(operation.outputMissingError)
    switch result {
    case .failure(OperationError.Code.inputUnavailable) where !group.failures.isEmpty:
      return .failure(AggregateError(group.failures).primary.error)
    case .success, .failure: return result
    }
  }
}

extension AsyncOperation {
  /// Runs `operation`, with what it waits for that is free, inside this one. It is cancelled with this one, and `body`
  /// then still called.
  func runInside<Inner: OutputOperation>(
    _ operation: Inner,
    then body: @escaping @Sendable (Result<Inner.Output, any Error>) -> Void
  ) {
    let group = GroupOperation(displayName, [operation])
    InnerRun(operation, in: group, inside: self, body).start(for: self)
  }

  /// The same, if `operation` is free. Otherwise does nothing, and returns false.
  func runInsideIfFree<Inner: OutputOperation>(
    _ operation: Inner,
    then body: @escaping @Sendable (Result<Inner.Output, any Error>) -> Void
  ) -> Bool {
    // Mostly that is known before a group is made for it.
    guard operation.isFree else { return false }
    let group = GroupOperation(displayName, [])
    guard group.addIfFree(operation) else { return false }
    InnerRun(operation, in: group, inside: self, body).start(for: self)
    return true
  }
}
