/// What happens to a consumer when its producer failed, was cancelled, or finished without a value.
public enum InputPolicy: Sendable {
  /// The consumer is cancelled with ``OperationError/Code/inputUnavailable``, and so are its own consumers. The default.
  case required
  /// The consumer executes without the value.
  case optional
}
