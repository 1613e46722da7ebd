/// What happens when an operation requests a key that is held or waited for.
public enum ExclusivityPolicy: CaseIterable, Sendable {
  /// The operation waits: first come, first served.
  case wait
  /// The operation cancels all holders and waiters before it, then waits for the holders to finish. A member of a group that
  /// holds the key cancels and waits only for other members.
  case replace
  /// The operation finishes without executing. It is cancelled with ``OperationError/Code/excluded``, whose message names the
  /// key and the operation that has it.
  case drop
}
