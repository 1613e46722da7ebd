public import Foundation

/// An error and the path of the operation that failed with it.
public struct OperationFailure: Error {
  /// The names from the outermost group down to the failed operation, for example `["Import", "Download", "page 3"]`.
  ///
  /// An operation without a name is represented by its type. The path is empty for an error of no operation.
  public let path: [String]
  /// The error.
  public let error: any Error

  /// Creates a failure.
  ///
  /// - Parameters:
  ///   - path: The names from the outermost group down to the failed operation. It may be empty.
  ///   - error: The error.
  public init(path: [String], error: any Error) {
    self.path = path
    self.error = error
  }

  /// Returns failures for `errors`, which a group may have translated or dropped, with the paths from `failures`.
  ///
  /// If the counts are equal, each error is the translation of the failure at its index. Otherwise, an error that
  /// equals a failure, in the same order, keeps the path of that failure, and a new error has no path. O(n).
  static func matching(_ errors: [any Error], with failures: [OperationFailure]) -> [OperationFailure] {
    if errors.count == failures.count {
      return zip(errors, failures).map { OperationFailure(path: $1.path, error: $0) }
    }
    if errors.isEmpty { return [] }
    // In reverse, so that the first of equal failures is the last of its array.
    var places: [ErrorLook: [Int]] = [:]
    for (index, failure) in failures.enumerated().reversed() {
      places[ErrorLook(failure.error), default: []].append(index)
    }
    var next = 0
    return errors.map { error in
      let look = ErrorLook(error)
      while let index = places[look]?.popLast() {
        if index < next { continue }
        next = index + 1
        return OperationFailure(path: failures[index].path, error: error)
      }
      return OperationFailure(path: [], error: error)
    }
  }

  /// Returns the failure with `name` in front of its path.
  func below(_ name: String) -> OperationFailure { OperationFailure(path: [name] + path, error: error) }
}

extension OperationFailure: LocalizedError, CustomStringConvertible {
  public var errorDescription: String? { description }

  public var description: String { (path.isEmpty ? "" : path.joined(separator: " › ") + ": ") + describe(error) }
}
