import Foundation

extension OutputOperation {
  /// An operation that turns this one's value into another. It waits for this one, and is to be enqueued as any other;
  /// `run(graphEndingIn:)` takes both along.
  ///
  /// ```swift
  /// let words = try await queue.run(graphEndingIn: download.map { $0.split(separator: " ").count })
  /// ```
  public func map<T: Sendable>(_ transform: @escaping @Sendable (Output) throws -> T) -> TransformOperation<Output, T> {
    pass(to: TransformOperation(transform))
  }

  /// The same with an asynchronous function, which runs in a task that is cancelled with the operation.
  public func map<T: Sendable>(
    _ transform: @escaping @Sendable (Output) async throws -> T
  ) -> TransformOperation<Output, T> {
    pass(to: TransformOperation(transform))
  }

  /// Calls `body` with the outcome when the operation has finished, whatever way it did; at once if it has.
  ///
  /// Once, on the finishing thread, after `isFinished` is true.
  public func onFinish(_ body: @escaping @Sendable (Result<Output, any Error>) -> Void) {
    addObserver(
      OperationObserver(didFinish: { operation in
        body((operation as? Self)?.result ?? .failure(operation.outputMissingError))
      })
    )
  }

  /// Calls `body` on the main actor with the outcome when the operation has finished, whatever way it did.
  ///
  /// ```swift
  /// loadProfile.onFinishOnMain { result in screen.show(result) }
  /// ```
  ///
  /// Once, soon after `isFinished` is true, and never before this method has returned. Several are called in the order in
  /// which the operations finished.
  public func onFinishOnMain(_ body: @escaping @MainActor @Sendable (Result<Output, any Error>) -> Void) {
    onFinish { result in DispatchQueue.main.async { MainActor.assumeIsolated { body(result) } } }
  }
}

/// An operation whose value is those of all `operations`, for which it waits.
///
/// ```swift
/// let (user, posts, friends) = try await queue.run(graphEndingIn: zip(loadUser, loadPosts, loadFriends))
/// ```
public func zip<each O: OutputOperation>(
  _ operations: repeat each O
) -> ResultOperation<(repeat (each O).Output)> {
  ZipOperation(repeat each operations)
}

/// An operation whose value is those of all `operations`, in the order given, for which it waits.
public func collect<T>(_ operations: [some OutputOperation<T>]) -> ResultOperation<[T]> {
  collect(operations, input: .required)
}

/// The same, where with ``InputPolicy/optional`` the values that are not to be had are left out.
public func collect<T>(
  _ operations: [some OutputOperation<T>],
  input policy: InputPolicy
) -> ResultOperation<[T]> {
  let all = CollectOperation<T>(capacity: operations.count)
  for operation in operations { all.collect(operation, policy) }
  return all
}

/// An operation whose value is those of all `operations`, which may be of different types, in the order given, for which
/// it waits.
public func collect<T>(_ operations: [any OutputOperation<T>]) -> ResultOperation<[T]> {
  collect(operations, input: .required)
}

/// The same, where with ``InputPolicy/optional`` the values that are not to be had are left out.
public func collect<T>(
  _ operations: [any OutputOperation<T>],
  input policy: InputPolicy
) -> ResultOperation<[T]> {
  let all = CollectOperation<T>(capacity: operations.count)
  for operation in operations { all.collect(operation, policy) }
  return all
}
