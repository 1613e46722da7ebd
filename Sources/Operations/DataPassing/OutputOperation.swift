/// An operation that ends with a value or an error.
public protocol OutputOperation<Output>: AsyncOperation {
  /// What the operation ends with.
  associatedtype Output: Sendable

  /// How the operation ended. Nil until it does; set before `isFinished` turns true.
  var result: Result<Output, any Error>? { get }
}

extension OutputOperation {
  /// The value of a finished operation, or its error.
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
