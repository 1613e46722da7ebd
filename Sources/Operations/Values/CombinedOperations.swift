/// An operation whose value is a tuple of the values of its producers.
final class ZipOperation<each Producer: OutputOperation>: ResultOperation<(repeat (each Producer).Output)>,
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

/// An operation whose value is an array of the values that it receives, in the order of the `pass` calls.
final class CollectOperation<Element: Sendable>: ResultOperation<[Element]>, @unchecked Sendable {
  /// Written by the hand-overs, which run one after the other on the executing thread.
  private var values: [Element] = []

  init(capacity: Int) {
    super.init()
    values.reserveCapacity(capacity)
  }

  func collect(_ operation: some OutputOperation<Element>, _ policy: InputPolicy) {
    operation.pass(to: self, input: policy) { all, value in all.values.append(value) }
  }

  override func execute() { finish(returning: values) }
}
