/// What an operation does that finds one of its keys taken, or others waiting for it.
public enum ExclusivityPolicy: CaseIterable, Sendable {
  /// It waits: first come, first served.
  case wait
  /// It cancels all that hold or wait for one of its keys, and then waits until the holders have finished.
  case replace
  /// It does not execute: it is cancelled with ``OperationError/Code/excluded``, which names the key and who has it, and
  /// finishes, so that what depends on it goes on.
  case drop
}
