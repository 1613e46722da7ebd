import Foundation

extension OperationError {
  /// The error of an operation whose input is not to be had.
  static func inputUnavailable(
    to consumer: Operation,
    from producer: Operation,
    because cause: any Error
  ) -> OperationError {
    let details = RootCauses(of: [cause]).description()
    let reason =
      switch cause {
      case is CancellationError: "which was cancelled"
      case OperationError.Code.inputUnavailable: "which had none either"
      default: "which failed"
      }
    return OperationError(
      .inputUnavailable,
      "\(consumer.quotedName) has no input from \(producer.quotedName), \(reason)"
        + (details.isEmpty ? "." : ": \(details)"),
      underlyingErrors: RootCauses.bounded([cause])
    )
  }
}
