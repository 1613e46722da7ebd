public import Foundation

/// Several failures as one error: what awaiting a failed group throws.
public struct AggregateError: Error {
  /// Every failure, in the order they happened. Never empty.
  public let failures: [OperationFailure]
  /// Whether the operation was cancelled as well.
  public let isCancelled: Bool

  /// - Precondition: `failures` is not empty; an aggregate of nothing would be an error that did not happen.
  public init(_ failures: [OperationFailure]) { self.init(failures, isCancelled: false) }

  init(_ failures: [OperationFailure], isCancelled: Bool) {
    guard !failures.isEmpty else { misuse("An AggregateError needs a failure: throw nothing where nothing failed.") }
    self.failures = failures
    self.isCancelled = isCancelled
  }

  /// The first failure that is not the echo of another.
  ///
  /// An echo is the `.inputUnavailable` of an operation whose producer failed, or a `.conditionFailed` that is about
  /// another operation's failure. Where there is nothing but echoes, the first of them. O(n).
  public var primary: OperationFailure {
    // Only put into words if somebody asks for it.
    lazy var looks = Set(failures.map { ErrorLook($0.error) })
    return failures.first { failure in !Self.isEcho(failure.error) { looks.contains(ErrorLook($0)) } } ?? failures[0]
  }

  /// The errors of one type, in the order they happened.
  public func errors<E: Error>(of type: E.Type) -> [E] { failures.compactMap { $0.error as? E } }

  private static func isEcho(_ error: any Error, of isAmongUs: (any Error) -> Bool) -> Bool {
    guard let error = error as? OperationError else { return false }
    switch error.code {
    case .inputUnavailable: return true
    case .conditionFailed:
      return error.underlyingErrors.contains { OperationError.Code.inputUnavailable ~= $0 }
        || error.rootCauses.errors.contains(where: isAmongUs)
    default: return false
    }
  }
}

extension AggregateError: LocalizedError, CustomStringConvertible {
  public var errorDescription: String? { description }

  public var description: String {
    if failures.count == 1 { return failures[0].description }
    return "\(failures.count) failures:\n" + failures.map { "- \($0)" }.joined(separator: "\n")
  }
}
