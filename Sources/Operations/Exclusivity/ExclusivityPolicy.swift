/// What an operation does that finds one of its keys taken, or others waiting for it.
public enum ExclusivityPolicy: CaseIterable, Sendable {
  /// It waits: first come, first served.
  case wait
  /// It cancels all that it would have to wait for, be it that they hold one of its keys or that they wait for it, and
  /// then waits until the holders have finished. (A member of a group that holds the key need not wait for the group,
  /// nor for those who do.)
  case replace
  /// It does not execute: it is cancelled with ``OperationError/Code/excluded``, which names the key and who has it,
  /// and finishes, so that what depends on it goes on. A plain operation that does not let itself be cancelled waits.
  case drop
}
