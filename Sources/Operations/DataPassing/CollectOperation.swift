/// Ends with the values that were handed over to it, in that order.
final class CollectOperation<Element: Sendable>: ResultOperation<[Element]>, @unchecked Sendable {
  /// Written by the hand-overs, which come one after the other, on the thread that executes.
  var values: [Element] = []

  override func execute() { finish(returning: values) }
}
