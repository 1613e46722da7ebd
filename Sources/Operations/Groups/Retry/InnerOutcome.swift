struct InnerOutcome<Output: Sendable>: Sendable {
  private(set) var result: Result<Output, any Error>
  /// The paths begin with the operation's name.
  private(set) var failures = FailureReport([])
  /// The private operation, whose work may outlast it.
  private(set) var inner: AsyncOperation?

  init(failure error: any Error) { result = .failure(error) }

  /// If a producer in the private group failed, the outcome is the failure that caused this.
  init(of work: AnyOutputOperation<Output>, in group: GroupOperation? = nil) {
    let operation = work.operation
    let (name, ownFailures) = (operation.displayName, operation.ownFailures)
    result = work.result
    if ownFailures.isEmpty, case .failure(let error) = result {
      failures = FailureReport(failures: [OperationFailure(path: [name], error: error)])
    } else {
      failures = FailureReport(failures: ownFailures.map { $0.below(name) })
    }
    inner = group ?? operation
    guard case .failure(let error as OperationError) = result, error.isOfFailedProducer, let group,
      !group.failures.isEmpty
    else { return }
    let primary = AggregateError(group.failures).primary
    // Drops the group's name, which is the name of the enclosing operation.
    let failure = OperationFailure(path: Array(primary.path.dropFirst()), error: primary.error)
    result = .failure(primary.error)
    failures = FailureReport(failures: [failure])
  }
}
