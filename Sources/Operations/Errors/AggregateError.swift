public import Foundation

/// Several failures as one error. Awaiting a failed group throws it.
public struct AggregateError: Error {
  /// All failures, in the order they occurred. Never empty.
  public let failures: [OperationFailure]
  /// Whether the operation was also cancelled.
  public let isCancelled: Bool

  /// Creates an error from failures.
  ///
  /// - Precondition: `failures` is not empty, because an error needs at least one failure.
  public init(_ failures: [OperationFailure]) { self.init(failures, isCancelled: false) }

  init(_ failures: [OperationFailure], isCancelled: Bool) {
    guard !failures.isEmpty else { misuse("An AggregateError needs a failure: throw nothing where nothing failed.") }
    self.failures = failures
    self.isCancelled = isCancelled
  }

  /// The first failure that is not the consequence of another failure. If all are consequences, the first failure.
  /// O(n).
  ///
  /// A consequence is an `.inputUnavailable` of an operation whose producer failed, or a `.conditionFailed` that
  /// reports the failure of another operation.
  public var primary: OperationFailure {
    // Lazy, because describing an error is expensive.
    lazy var looks = Set(failures.map { ErrorLook($0.error) })
    return failures.first { failure in !Self.isEcho(failure.error) { looks.contains(ErrorLook($0)) } } ?? failures[0]
  }

  /// Returns the errors of one type, in the order they occurred.
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
