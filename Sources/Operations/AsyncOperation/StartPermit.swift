/// What an operation needs, besides the end of its dependencies, to execute: what mutual exclusion is to the layers
/// below it.
///
/// The calls come without a lock held, on the thread where it happened.
class StartPermit: @unchecked Sendable {
  /// The operation, which is in a queue, has nothing else to wait for.
  ///
  /// - Returns: Whether it may become ready now. Otherwise ``AsyncOperation/permitIsGranted()`` is called later.
  func request() -> Bool { true }

  /// The operation waits for something else again, and will request the permit later.
  ///
  /// - Returns: Whether it has left the wait queue. It has not if the permit has been granted.
  func withdraw() -> Bool { false }

  /// The operation is about to begin.
  ///
  /// - Parameter isInHand: The operation has been started. Otherwise a group looks whether it can start it.
  /// - Returns: Whether it may. Otherwise it waits, on no thread: for ``whenGranted(_:)`` if it has been started, for
  ///   ``AsyncOperation/permitIsGranted()`` if it has not.
  func acquire(isInHand: Bool) -> Bool { true }

  /// Calls `resumption`, now or later, unless the operation ends before.
  func whenGranted(_ resumption: @escaping @Sendable () -> Void) {}

  func operationWasCancelled() {}

  /// The operation has finished, in whatever way.
  func operationDidFinish() {}

  /// What the operation waits for, for a sentence about it.
  var goal: String { "its permit" }
}
