/// The engine of a group, which runs operations instead of an `OperationQueue`.
///
/// All calls are made without a lock held, on the thread where the event occurred. A class rather than a protocol, so
/// that an uncounted reference to it takes one word: see ``OperationCore/supervisor``.
class OperationSupervisor: @unchecked Sendable {
  /// The member is ready to start. Called once, and again after a start was refused because of a new dependency.
  func memberIsReady(_ member: AsyncOperation) {}

  /// The group whose members this supervisor runs.
  var supervisedGroup: AsyncOperation? { nil }

  /// The member, which has not been started, has a new dependency.
  func memberGainedDependency(_ member: AsyncOperation) {}

  /// The member reports its own progress from now on.
  func memberReportsProgress(_ member: AsyncOperation, index: Int) {}

  /// Publishes the progress of a member.
  ///
  /// - Returns: Whether the progress of the group around this one must be published as well.
  func publishProgress() -> Bool { false }
}

/// An object that starts operations for a supervisor, and is notified when they finish.
///
/// It is separate from the supervisor, and there is one per thread. If all threads shared one object, they would spend
/// most of their time on its reference count.
class OperationStarter: @unchecked Sendable {
  /// The clock that the started operations keep when they have left the group. Nil for the system's clock.
  let clock: (any Clock<Duration>)?

  init(clock: (any Clock<Duration>)? = nil) { self.clock = clock }

  /// Whether this starter must be notified of a failed operation before the operation's dependents are.
  var isNotifiedOfFailuresFirst: Bool { false }

  /// The operation has finished, and its observers have been notified.
  ///
  /// - Parameters:
  ///   - index: The index that the supervisor gave the operation.
  ///   - failed: Whether the operation has errors.
  ///   - holdsSlot: Whether the operation has a slot to release. An operation that finishes while it pauses without
  ///     its slot has none.
  func memberDidFinish(_ member: AsyncOperation, index: Int, failed: Bool, holdsSlot: Bool) {}

  /// An executing operation releases its slot. It will become ready again, and be started a second time, to continue.
  func memberDidPause() {}
}
