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
}

/// An operation whose value is those of two others, for which it waits.
public func zip<A, B>(
  _ a: some OutputOperation<A>,
  _ b: some OutputOperation<B>
) -> ResultOperation<(A, B)> {
  let both = ZipOperation<A, B>()
  a.pass(to: both) { both, value in both.first = value }
  b.pass(to: both) { both, value in both.second = value }
  return both
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
  let all = CollectOperation<T>()
  all.values.reserveCapacity(operations.count)
  for operation in operations { operation.pass(to: all, input: policy) { all, value in all.values.append(value) } }
  return all
}
