/// What happens to an operation that requests a key which is held, or waited for.
public enum ExclusivityPolicy: CaseIterable, Sendable {
  /// The operation waits: first come, first served.
  case wait
  /// The operation cancels the ones before it, holders and waiters, and then waits for the holders to finish. (A member
  /// of a group that holds the key waits neither for the group nor for those that wait for the group.)
  case replace
  /// The operation does not execute: it is cancelled with ``OperationError/Code/excluded``, whose message names the key
  /// and the operation that has it, and finishes, so that its dependents go on.
  case drop
}
