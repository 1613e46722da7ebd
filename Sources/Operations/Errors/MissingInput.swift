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

extension OperationError {
  /// How many producers a message speaks of.
  private static let namedProducers = 3

  /// The error of an operation whose inputs are not to be had.
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
