/// Who runs an operation instead of an OperationQueue: a group's engine.
///
/// The calls come without a lock held, on the thread where it happened. A class rather than a protocol, so that the
/// reference to it is one word without a count: see ``OperationCore/supervisor``.
class OperationSupervisor: @unchecked Sendable {
  /// The operation may be started now. Said once, until a start is turned down because a dependency was added.
  func memberIsReady(_ member: AsyncOperation) {}

  /// The group whose members it supervises.
  var supervisedGroup: AsyncOperation? { nil }

  /// The operation, not yet started, waits for one more.
  func memberGainedDependency(_ member: AsyncOperation) {}

  /// The operation reports its own progress, from now on.
  func memberReportsProgress(_ member: AsyncOperation, index: Int) {}

  /// A member has got on: whoever follows the group's progress hears of it.
  ///
  /// - Returns: Whether the group around that one is to hear of it, too.
  func publishProgress() -> Bool { false }
}

/// Who started an operation for its supervisor, and is told of its end.
///
/// Another object than the supervisor, one a thread: references to one that all threads share would be counted by all
/// of them, and that is what they would spend their time on.
class OperationStarter: @unchecked Sendable {
  /// What those that it starts keep as their clock when they have left the group. Nil if that is the system's.
  let clock: (any Clock<Duration>)?

  init(clock: (any Clock<Duration>)? = nil) { self.clock = clock }

  /// Whether it has to hear of an operation that failed before those do that waited for it.
  var hearsOfFailuresFirst: Bool { false }

  /// The operation has finished, and its observers have heard of it.
  ///
  /// - Parameters:
  ///   - index: What the supervisor gave the operation to remember.
  ///   - failed: Whether it has errors.
  ///   - holdsSlot: Whether it has a slot to give back. One that ends in a pause has not.
  func memberDidFinish(_ member: AsyncOperation, index: Int, failed: Bool, holdsSlot: Bool) {}

  /// An executing operation gives its slot back. It will become ready again, and be started a second time, to go on.
  func memberDidPause() {}
}
