import Foundation

extension OperationError {
  /// The error of an operation that was not to wait for a key.
  static func excluded(_ operation: Operation, from key: ExclusivityKey, by other: ExclusivityRequest?)
    -> OperationError
  {
    let other = other?.operation?.quotedName ?? "another operation"
    return OperationError(
      .excluded,
      "\(operation.quotedName) was not executed, for \(other) has the key \(key.quoted)."
    )
  }

  /// The error of an operation that would wait for ever.
  static func circle(of operation: Operation, wanting key: ExclusivityKey, of holder: Operation?) -> OperationError {
    let holder = holder?.quotedName ?? "another operation"
    return OperationError(
      .waitCycle,
      "\(operation.quotedName) was not executed: it would wait for the key \(key.quoted), which \(holder) holds, and that "
        + "for a group around \(operation.quotedName). Let the groups ask for all of the keys."
    )
  }
}
