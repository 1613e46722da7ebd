/// The permission that an operation needs to execute once its dependencies have finished.
///
/// The base class grants it at once. Mutual exclusion, a higher layer, overrides it. All calls are made without a lock held.
class StartPermit: @unchecked Sendable {
  /// Requests the permit for an operation in a queue whose dependencies have finished.
  ///
  /// - Returns: Whether the operation can become ready. Otherwise ``AsyncOperation/permitIsGranted()`` is called later.
  func request() -> Bool { true }

  /// Withdraws the request, because the operation has a new unfinished dependency. It requests the permit again later.
  ///
  /// - Returns: Whether the request was withdrawn. It is not if the permit has been granted.
  func withdraw() -> Bool { false }

  /// Acquires what the operation needs, just before it executes.
  ///
  /// - Parameter isStarted: Whether the operation has been started. Otherwise a group is about to start it.
  /// - Returns: Whether the operation can execute. Otherwise it waits without a thread: a started operation for
  ///   ``whenGranted(_:)``, another one for ``AsyncOperation/permitIsGranted()``.
  func acquire(isStarted: Bool) -> Bool { true }

  /// Calls `resumption` when a started operation has acquired what it needs, unless the operation ends before.
  func whenGranted(_ resumption: @escaping @Sendable () -> Void) {}

  func operationWasCancelled() {}

  func operationDidFinish() {}

  /// What the operation waits for, as part of a message.
  var goal: String { "its permit" }
}
