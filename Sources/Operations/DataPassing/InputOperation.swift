/// An operation that takes a value, which another one may pass to it: see <doc:PassingData>.
public protocol InputOperation<Input>: AsyncOperation {
  /// What the operation works on.
  associatedtype Input: Sendable

  /// What to work with. Set before the operation executes, on the thread on which it does.
  var input: Input? { get set }
}

extension AsyncOperation {
  /// The error of an operation that nobody has given an input.
  var inputMissingError: OperationError {
    OperationError(
      .inputUnavailable,
      "\(quotedName) has no input. Pass it another operation's output, or set its input."
    )
  }
}
