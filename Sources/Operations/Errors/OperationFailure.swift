public import Foundation

/// An error together with the operation it happened in.
public struct OperationFailure: Error {
  /// The names from the outermost group down to the operation that failed: `["Import", "Download", "page 3"]`. An
  /// operation without a name goes by its type's. Empty for an error that belongs to none.
  public let path: [String]
  /// The error itself.
  public let error: any Error

  /// - Parameters:
  ///   - path: The names that lead to where it went wrong, from the outside in. It may be empty.
  ///   - error: What went wrong.
  public init(path: [String], error: any Error) {
    self.path = path
    self.error = error
  }

  /// Gives errors back the paths they had in `failures`, after somebody may have translated or dropped some.
  ///
  /// As many errors as there were are taken to be translations, one by one. Otherwise those that look as before, in the
  /// same order, keep their path; new ones have none. O(n).
  static func matching(_ errors: [any Error], with failures: [OperationFailure]) -> [OperationFailure] {
    if errors.count == failures.count {
      return zip(errors, failures).map { OperationFailure(path: $1.path, error: $0) }
    }
    if errors.isEmpty { return [] }
    // The first of those that look alike is the last in its line.
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

  func below(_ name: String) -> OperationFailure { OperationFailure(path: [name] + path, error: error) }
}

extension OperationFailure: LocalizedError, CustomStringConvertible {
  public var errorDescription: String? { description }

  public var description: String { (path.isEmpty ? "" : path.joined(separator: " › ") + ": ") + describe(error) }
}
