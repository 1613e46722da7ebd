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

/// An operation of any kind together with the value it leads to.
struct AnyOutputOperation<Output: Sendable>: Sendable {
  let operation: AsyncOperation
  /// Returns the value of the finished operation, or throws what awaiting it throws. It does not hold the operation.
  let output: @Sendable (AsyncOperation) throws -> Output

  init<Base: OutputOperation>(_ operation: Base) where Base.Output == Output {
    self.operation = operation
    output = { try unsafe unsafeDowncast($0, to: Base.self).output() }
  }

  init(anyOperation operation: AsyncOperation) where Output == Void {
    self.operation = operation
    output = { if let error = $0.outcomeError { throw error } }
  }

  init(_ operation: AsyncOperation, _ output: @escaping @Sendable (AsyncOperation) throws -> Output) {
    self.operation = operation
    self.output = output
  }

  /// How the finished operation ended.
  var result: Result<Output, any Error> { Result { try output(operation) } }
}
