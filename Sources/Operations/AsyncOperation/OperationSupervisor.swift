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
