public import Foundation

/// An error together with the operation it happened in.
public struct OperationFailure: Error {
  /// The names from the outermost group down to the operation that failed: `["Import", "Download", "page 3"]`. An
  /// operation without a name goes by its type's.
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
  /// same order, keep their path; new ones have none.
  static func matching(_ errors: [any Error], with failures: [OperationFailure]) -> [OperationFailure] {
    if errors.count == failures.count {
      return zip(errors, failures).map { OperationFailure(path: $1.path, error: $0) }
    }
    var rest = failures[...]
    return errors.map { error in
      guard let index = rest.firstIndex(where: { seemsSame($0.error, error) }) else {
        return OperationFailure(path: [], error: error)
      }
      defer { rest = rest[(index + 1)...] }
      return OperationFailure(path: rest[index].path, error: error)
    }
  }

  func below(_ name: String) -> OperationFailure { OperationFailure(path: [name] + path, error: error) }
}

extension OperationFailure: LocalizedError, CustomStringConvertible {
  public var errorDescription: String? { description }

  public var description: String { path.joined(separator: " › ") + ": " + describe(error) }
}
