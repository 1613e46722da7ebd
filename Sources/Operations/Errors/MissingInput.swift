import Foundation

/// A value that is not to be had, and why.
struct MissingInput {
  let producer: Operation
  let cause: any Error

  /// The producer and what became of it.
  var description: String {
    let reason =
      switch cause {
      case is CancellationError: "which was cancelled"
      case OperationError.Code.inputUnavailable: "which had none either"
      default: "which failed"
      }
    return "\(producer.quotedName), \(reason)"
  }
}
