import Foundation

extension OperationError {
  /// How many levels of causes an error keeps. Down a long chain every error would hold all those before it, and letting
  /// go of the last would recurse.
  private static let depth = 16

  /// The error of an operation whose input is not to be had.
  static func inputUnavailable(
    to consumer: Operation,
    from producer: Operation,
    because cause: any Error
  ) -> OperationError {
    let roots = rootCauses(of: cause)
    let details = roots.filter { !($0 is CancellationError) }.map(describe).joined(separator: "; ")
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
      underlyingErrors: levels(of: cause) < depth ? [cause] : roots
    )
  }

  private static func levels(of error: any Error) -> Int {
    var levels = 1
    var error = error
    while levels < depth, let next = (error as? OperationError)?.underlyingErrors.first {
      error = next
      levels += 1
    }
    return levels
  }

  /// The errors at the bottom of an error's causes; the error itself if it has none.
  static func rootCauses(of error: any Error) -> [any Error] {
    var roots: [any Error] = []
    var rest = [error]
    while let next = rest.popLast() {
      let causes = (next as? OperationError)?.underlyingErrors ?? (next as? AggregateError)?.failures ?? []
      if causes.isEmpty { roots.append(next) } else { rest += causes.reversed() }
    }
    return roots
  }
}
