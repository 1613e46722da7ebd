/// Who runs an operation instead of an OperationQueue: a group's engine.
///
/// The calls come without a lock held, on the thread where it happened.
protocol OperationSupervisor: AnyObject, Sendable {
  /// The operation may be started now. Said once, until a start is turned down because a dependency was added.
  func memberIsReady(_ member: AsyncOperation)
  /// The operation has finished, and its observers have heard of it.
  func memberDidFinish(_ member: AsyncOperation)
  /// The operation, not yet started, waits for one more.
  func memberGainedDependency(_ member: AsyncOperation)
}
