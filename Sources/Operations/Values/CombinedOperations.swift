/// An operation whose value is a tuple of the values of its producers.
final class ZipOperation<each Producer: OutputOperation>: ResultOperation<(repeat (each Producer).Output)>,
  @unchecked Sendable
{
  private let slots: (repeat ZipSlot<each Producer>)

  init(_ producers: repeat each Producer) {
    slots = (repeat ZipSlot(of: each producers))
    super.init()
    repeat (each slots).fill(with: each producers, before: self)
  }

  override func execute() {
    do { finish(returning: (repeat try (each slots).value(for: self))) } catch { finish(with: error) }
  }
}

/// The place of one value in a ``ZipOperation``.
final class ZipSlot<Producer: OutputOperation>: @unchecked Sendable {
  /// Written by the hand-overs, which run one after the other on the executing thread.
  private var value: Producer.Output?

  init(of producer: Producer) {}

  func fill(with producer: Producer, before consumer: AsyncOperation) {
    producer.pass(to: consumer) { _, value in self.value = value }
  }

  func value(for consumer: AsyncOperation) throws -> Producer.Output {
    guard let value else { throw consumer.inputMissingError }
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

  /// Adds the value of `operation` to the array.
  func collect(_ operation: some OutputOperation<Element>, _ policy: InputPolicy) {
    operation.pass(to: self, input: policy) { all, value in all.values.append(value) }
  }

  override func execute() { finish(returning: values) }
}
