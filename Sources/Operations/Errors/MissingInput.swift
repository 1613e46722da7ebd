import Foundation

/// An input value that is not available, and the reason.
struct MissingInput {
  let producer: Operation
  let cause: any Error

  /// The producer and its outcome, as part of a message.
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

extension OperationError {
  /// The largest number of producers that a message names.
  private static let namedProducers = 3

  /// Returns the error of an operation whose inputs are not available.
  static func inputUnavailable(to consumer: Operation, _ missing: [MissingInput]) -> OperationError {
    let causes = missing.map(\.cause)
    let producers = missing.prefix(namedProducers).map(\.description).joined(separator: ", nor from ")
    let others = missing.count > namedProducers ? ", nor from \(missing.count - namedProducers) others" : ""
    let roots = RootCauses(of: causes)
    let details = roots.description()
    return OperationError(
      .inputUnavailable,
      "\(consumer.quotedName) has no input from \(producers)\(others)" + (details.isEmpty ? "." : ": \(details)"),
      underlyingErrors: roots.bounded(causes)
    )
  }
}
