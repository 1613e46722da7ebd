import Operations

/// Adds the words of a chunk to those of the text before it.
final class SumOperation: ResultOperation<Words>, @unchecked Sendable {
  /// Both are written by the operations that pass them, before this one executes.
  var left = Words()
  var right = Words()

  override func execute() { finish(returning: left + right) }
}
