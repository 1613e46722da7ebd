import Foundation

/// The permission to execute, once all dependencies have finished. The base class grants it at once; mutual exclusion,
/// a higher layer, overrides it. All calls are made without a lock held.
class StartPermit: @unchecked Sendable {
  /// Returns whether the permit is granted at once. Otherwise ``AsyncOperation/permitIsGranted()`` is called later. A
  /// repeated request has no effect.
  func request(from supervisor: OperationSupervisor?, _ queue: OperationQueue?) -> Bool { true }

  /// Gives up the request or the permit, because of a new dependency. Has no effect after ``acquire(from:)``.
  func withdraw() {}

  /// Acquires the permit, just before the operation executes. Without it, a member waits as after a request, and any
  /// other operation stays started until ``whenGranted(_:)`` calls back.
  func acquire(from supervisor: OperationSupervisor?) -> Bool { true }

  /// Calls `resumption` when a started operation has acquired the permit, unless the operation ends before.
  func whenGranted(_ resumption: @escaping @Sendable () -> Void) {}

  func operationWasCancelled() {}

  /// The operation has finished, or has been released without finishing.
  func operationIsOver() {}

  /// The name of the permit, as part of a message.
  var goal: String { "its permit" }
}
