/// Ends with the values that were handed over to it, in that order.
final class CollectOperation<Element: Sendable>: ResultOperation<[Element]>, @unchecked Sendable {
  /// Written by the hand-overs, which come one after the other, on the thread that executes.
  private var values: [Element] = []

  init(capacity: Int) {
    super.init()
    values.reserveCapacity(capacity)
  }

  /// Waits for the value of `operation`.
  func collect(_ operation: some OutputOperation<Element>, _ policy: InputPolicy) {
    operation.pass(to: self, input: policy) { all, value in all.values.append(value) }
  }

  override func execute() { finish(returning: values) }
}
