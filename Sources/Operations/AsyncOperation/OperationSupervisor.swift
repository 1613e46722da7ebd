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
}

/// Who started an operation for its supervisor, and is told of its end.
///
/// Another object than the supervisor, one a thread: references to one that all threads share would be counted by all of
/// them, and that is what they would spend their time on.
class OperationStarter: @unchecked Sendable {
  /// The operation has finished, and its observers have heard of it.
  ///
  /// - Parameters:
  ///   - index: What the supervisor gave the operation to remember.
  ///   - failed: Whether it has errors.
  func memberDidFinish(_ member: AsyncOperation, index: Int, failed: Bool) {}
}
