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
