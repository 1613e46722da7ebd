/// Returns an operation that waits for all `operations` and combines their values in a tuple.
///
/// ```swift
/// let (user, posts, friends) = try await queue.run(zip(loadUser, loadPosts, loadFriends))
/// ```
public func zip<each O: OutputOperation>(_ operations: repeat each O) -> ResultOperation<(repeat (each O).Output)> {
  ZipOperation(repeat each operations)
}

/// Returns an operation that waits for all `operations` and collects their values in an array, in the order given.
///
/// - Parameters:
///   - operations: The operations that provide the values, which may be of different types.
///   - policy: Whether every value is required. With ``InputPolicy/optional``, missing values are left out.
public func collect<T>(
  _ operations: [any OutputOperation<T>],
  input policy: InputPolicy = .required
) -> ResultOperation<[T]> {
  let all = CollectOperation<T>()
  for operation in operations {
    operation.pass(to: all, input: policy) { all, value in all.values.append(value) }
  }
  return all
}

private final class ZipOperation<each Producer: OutputOperation>: ResultOperation<(repeat (each Producer).Output)>,
  @unchecked Sendable
{
  private let values: (repeat Locked<(each Producer).Output?>)

  init(_ producers: repeat each Producer) {
    values = (repeat Self.place(for: each producers))
    super.init()
    repeat fill(each values, from: each producers)
  }

  private static func place<P: OutputOperation>(for producer: P) -> Locked<P.Output?> { Locked(nil) }

  private func fill<P: OutputOperation>(_ value: Locked<P.Output?>, from producer: P) {
    producer.pass(to: self as AsyncOperation) { _, new in value.withLock { $0 = new } }
  }

  override func execute() {
    do { finish(returning: (repeat try input(in: each values))) } catch { finish(with: error) }
  }

  private func input<Value>(in value: Locked<Value?>) throws -> Value {
    guard let value = value.withLock({ $0 }) else { throw inputMissingError }
    return value
  }
}

private final class CollectOperation<Element: Sendable>: ResultOperation<[Element]>, @unchecked Sendable {
  /// Written by the hand-overs, which run one after the other on the executing thread.
  fileprivate var values: [Element] = []

  override func execute() { finish(returning: values) }
}
