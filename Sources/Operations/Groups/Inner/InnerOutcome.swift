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
