/// Closures that hear of the stations of an operation's life.
///
/// Closures rather than a protocol with default bodies, so that no hook can be misspelt and silently never fire.
///
/// ```swift
/// operation.addObserver(OperationObserver(didFinish: { print($0.name ?? "?", "is done") }))
/// ```
///
/// The operation lets go of its observers when it has finished, so a closure may refer to the operation.
public struct OperationObserver: Sendable {
  let didStart: (@Sendable (AsyncOperation) -> Void)?
  let didCancel: (@Sendable (AsyncOperation) -> Void)?
  let didFinish: (@Sendable (AsyncOperation) -> Void)?

  /// - Parameters:
  ///   - didStart: Called when execution begins, on the thread that executes, before `execute()`. Not called for an
  ///     operation that never executes.
  ///   - didCancel: Called once, on the cancelling thread, also when the operation has not started yet; before the
  ///     operation's own ``AsyncOperation/didCancel()``, which may finish it, and before a group's members are
  ///     cancelled.
  ///   - didFinish: Called once, on the finishing thread, after `isFinished` is true, also when the operation was
  ///     cancelled. Operations that wait for this one through the toolkit start after the observers have heard of it.
  public init(
    didStart: (@Sendable (AsyncOperation) -> Void)? = nil,
    didCancel: (@Sendable (AsyncOperation) -> Void)? = nil,
    didFinish: (@Sendable (AsyncOperation) -> Void)? = nil
  ) {
    self.didStart = didStart
    self.didCancel = didCancel
    self.didFinish = didFinish
  }
}
