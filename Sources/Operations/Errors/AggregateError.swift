public import Foundation

/// The failures of an operation as one error. Awaiting a failed group throws it.
public struct AggregateError: LocalizedError, CustomStringConvertible {
  /// All failures, in the order they occurred. Empty if there was no operation that could fail or succeed.
  public let failures: [OperationFailure]
  /// Whether the operation was also cancelled.
  public let isCancelled: Bool

  /// Creates an error from failures.
  public init(_ failures: [OperationFailure]) { self.init(failures, isCancelled: false) }

  init(_ failures: [OperationFailure], isCancelled: Bool) {
    self.failures = failures.markingConsequences()
    self.isCancelled = isCancelled
  }

  /// The first failure that is no consequence of another, or the first failure if all are consequences. Without
  /// failures, this error itself.
  ///
  /// - Complexity: O(n).
  public var primary: OperationFailure {
    failures.first { !$0.isConsequence } ?? failures.first ?? OperationFailure(path: [], error: self)
  }

  /// The failures that are no consequences of others, in the order they occurred: see ``OperationFailure/isConsequence``.
  ///
  /// Empty if the causes are not among the failures, for example if a group waits for a failed operation outside.
  public var rootFailures: [OperationFailure] { failures.filter { !$0.isConsequence } }

  /// Returns the errors of one type, in the order they occurred.
  public func errors<E: Error>(of type: E.Type) -> [E] { failures.compactMap { $0.error as? E } }
  public var errorDescription: String? { description }

  public var description: String {
    if failures.isEmpty { return "There was no operation." }
    if failures.count == 1 { return failures[0].description }
    return "\(failures.count) failures:\n" + failures.map { "- \($0)" }.joined(separator: "\n")
  }
}
