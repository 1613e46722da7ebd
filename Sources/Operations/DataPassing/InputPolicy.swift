/// What becomes of an operation if a value that was to be passed to it is not to be had, because the operation that
/// should have produced it failed, was cancelled, or finished without one.
public enum InputPolicy: Sendable {
  /// It is cancelled, with ``OperationError/Code/inputUnavailable``, and so are those that wait for its value. The
  /// default.
  case required
  /// It executes without.
  case optional
}
