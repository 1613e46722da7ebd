/// An operation with an input value, which another operation can pass to it. See <doc:PassingData>.
public protocol InputOperation<Input>: AsyncOperation {
  /// The type of the input value.
  associatedtype Input: Sendable

  /// The input value. A passed value is set before the operation executes, on the executing thread.
  var input: Input? { get set }
}

extension AsyncOperation {
  /// The error of an operation whose input was never set.
  var inputMissingError: OperationError {
    OperationError(
      .inputUnavailable,
      "\(quotedName) has no input. Pass it another operation's output, or set its input."
    )
  }
}

/// What happens to a consumer when its producer failed, was cancelled, or finished without a value.
public enum InputPolicy: Sendable {
  /// The consumer is cancelled with ``OperationError/Code/inputUnavailable``, and so are its own consumers. This is
  /// the default.
  case required
  /// The consumer executes without the value.
  case optional
}
