import Foundation

/// An operation that finishes with a value or an error.
public protocol OutputOperation<Output>: AsyncOperation {
  /// The type of the value.
  associatedtype Output: Sendable

  /// The value or the error of the operation. Nil until the operation finishes, and set before `isFinished` turns true.
  var result: Result<Output, any Error>? { get }
}

extension OutputOperation {
  func output() throws -> Output {
    guard let result else { throw outputMissingError }
    return try result.get()
  }
}

extension AsyncOperation {
  /// The error of an operation that finished without its value.
  var outputMissingError: OperationError {
    OperationError(.outputMissing, "\(quotedName) finished without a value. Call finish(returning:) with one.")
  }
}

struct AnyOutputOperation<Output: Sendable>: Sendable {
  let operation: AsyncOperation
  /// Returns the value of the finished operation, or throws its error. The closure does not capture the operation.
  let output: @Sendable (AsyncOperation) throws -> Output

  init<Base: OutputOperation>(_ operation: Base) where Base.Output == Output {
    self.operation = operation
    output = { try unsafe unsafeDowncast($0, to: Base.self).output() }
  }

  init(anyOperation operation: AsyncOperation) where Output == Void {
    self.operation = operation
    output = { if let error = $0.outcomeError { throw error } }
  }

  var result: Result<Output, any Error> { Result { try output(operation) } }
}

extension OutputOperation {
  /// Returns an operation that transforms the value of this operation.
  ///
  /// The returned operation depends on this one, and must be enqueued like any other operation. `queue.run`
  /// enqueues both.
  ///
  /// ```swift
  /// let words = try await queue.run(download.map { $0.split(separator: " ").count })
  /// ```
  public func map<T: Sendable>(_ transform: @escaping @Sendable (Output) throws -> T) -> TransformOperation<Output, T> {
    pass(to: TransformOperation(transform))
  }

  /// Returns an operation that transforms the value of this operation with an asynchronous function.
  ///
  /// The function runs in a task that is cancelled with the operation.
  public func map<T: Sendable>(
    _ transform: @escaping @Sendable (Output) async throws -> T
  ) -> TransformOperation<Output, T> {
    pass(to: TransformOperation(transform))
  }

  /// Calls `body` with the result when the operation has finished in any way, or at once if it has finished.
  ///
  /// `body` is called once, on the finishing thread, after `isFinished` is true.
  public func onFinish(_ body: @escaping @Sendable (Result<Output, any Error>) -> Void) {
    addObserver(
      OperationObserver(didFinish: { operation in
        body((operation as? Self)?.result ?? .failure(operation.outputMissingError))
      })
    )
  }

  /// Calls `body` on the main actor with the result when the operation has finished in any way.
  ///
  /// ```swift
  /// loadProfile.onFinishOnMain { result in screen.show(result) }
  /// ```
  ///
  /// `body` is called once, soon after `isFinished` is true, and never before this method has returned. Several
  /// closures are called in the order in which their operations finished.
  public func onFinishOnMain(_ body: @escaping @MainActor @Sendable (Result<Output, any Error>) -> Void) {
    onFinish { result in DispatchQueue.main.async { MainActor.assumeIsolated { body(result) } } }
  }
}

/// Returns an operation that waits for all `operations` and combines their values in a tuple.
///
/// ```swift
/// let (user, posts, friends) = try await queue.run(zip(loadUser, loadPosts, loadFriends))
/// ```
public func zip<each O: OutputOperation>(
  _ operations: repeat each O
) -> ResultOperation<(repeat (each O).Output)> {
  ZipOperation(repeat each operations)
}

/// Returns an operation that waits for all `operations` and collects their values in an array, in the order given.
public func collect<T>(_ operations: [some OutputOperation<T>]) -> ResultOperation<[T]> {
  collect(operations, input: .required)
}

/// Returns an operation that waits for all `operations` and collects their values in an array, in the order given.
///
/// - Parameters:
///   - operations: The operations that provide the values.
///   - policy: Whether every value is required. With ``InputPolicy/optional``, missing values are left out.
public func collect<T>(
  _ operations: [some OutputOperation<T>],
  input policy: InputPolicy
) -> ResultOperation<[T]> {
  collect(operations as [any OutputOperation<T>], input: policy)
}

/// Returns an operation that waits for all `operations` and collects their values in an array, in the order given.
/// The operations may be of different types.
public func collect<T>(_ operations: [any OutputOperation<T>]) -> ResultOperation<[T]> {
  collect(operations, input: .required)
}

/// Returns an operation that waits for all `operations` and collects their values in an array, in the order given.
/// The operations may be of different types.
///
/// - Parameters:
///   - operations: The operations that provide the values.
///   - policy: Whether every value is required. With ``InputPolicy/optional``, missing values are left out.
public func collect<T>(
  _ operations: [any OutputOperation<T>],
  input policy: InputPolicy
) -> ResultOperation<[T]> {
  let all = CollectOperation<T>(capacity: operations.count)
  for operation in operations { all.collect(operation, policy) }
  return all
}
