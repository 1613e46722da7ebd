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
