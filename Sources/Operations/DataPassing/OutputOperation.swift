/// An operation that finishes with a value or an error.
public protocol OutputOperation<Output>: AsyncOperation {
  /// The type of the value.
  associatedtype Output: Sendable

  /// The value or the error of the operation. Nil until the operation finishes, and set before `isFinished` turns true.
  var result: Result<Output, any Error>? { get }
}

extension OutputOperation {
  /// Returns the value of a finished operation, or throws its error.
  func output() throws -> Output {
    guard let result else { throw outputMissingError }
    return try result.get()
  }
}

extension AsyncOperation {
  var outputMissingError: OperationError {
    OperationError(.outputMissing, "\(quotedName) finished without a value. Call finish(returning:) with one.")
  }
}
