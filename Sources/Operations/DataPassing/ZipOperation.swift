/// Ends with two values that were handed over to it.
final class ZipOperation<First: Sendable, Second: Sendable>: ResultOperation<(First, Second)>, @unchecked Sendable {
  /// Written by the hand-overs, which come one after the other, on the thread that executes.
  var first: First?
  var second: Second?

  override func execute() {
    guard let first, let second else { return finish(with: inputMissingError) }
    finish(returning: (first, second))
  }
}
