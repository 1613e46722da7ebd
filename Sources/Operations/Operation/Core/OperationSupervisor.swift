/// The engine of a group, which runs operations instead of an `OperationQueue`.
///
/// All calls are made without a lock held, on the thread where the event occurred. The supervisor is a class, so that
/// an uncounted reference takes one word. See ``OperationCore/supervisor``.
class OperationSupervisor: @unchecked Sendable {
  /// Responds to a member that is ready to start. Called once, and again after a new dependency prevented the start.
  func memberIsReady(_ member: AsyncOperation) {}

  /// The group whose members this supervisor runs.
  var supervisedGroup: AsyncOperation? { nil }

  /// Responds to a new dependency of a member that has not been started.
  func memberGainedDependency(_ member: AsyncOperation) {}

  /// Responds to a member that reports its own progress from now on.
  func memberReportsProgress(_ member: AsyncOperation, index: Int) {}

  /// Publishes the progress of a member.
  ///
  /// - Returns: Whether the progress of the group around this one must be published as well.
  func publishProgress() -> Bool { false }
}

/// An object that starts operations for a supervisor, and is notified when they finish.
///
/// Each thread has its own starter. Threads that share one object would spend most of their time on its reference
/// count.
class OperationStarter: @unchecked Sendable {
  /// The clock of the started operations that have no clock of their own. Nil for the system's clock.
  let clock: (any Clock<Duration>)?

  init(clock: (any Clock<Duration>)? = nil) { self.clock = clock }

  /// Whether this starter must be notified of a failed operation before the operation's dependents are.
  var isNotifiedOfFailuresFirst: Bool { false }

  /// Responds to the end of an operation, after its observers have been notified.
  ///
  /// - Parameters:
  ///   - index: The index that the supervisor gave the operation.
  ///   - failed: Whether the operation has errors.
  ///   - holdsSlot: Whether the operation has a slot to release. An operation that finishes while it pauses without
  ///     its slot has none.
  func memberDidFinish(_ member: AsyncOperation, index: Int, failed: Bool, holdsSlot: Bool) {}

  /// Responds to an executing operation that releases its slot. The operation becomes ready again later, and continues
  /// when it is started a second time.
  func memberDidPause() {}
}
