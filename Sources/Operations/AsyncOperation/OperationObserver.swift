/// Closures that are called at the lifecycle events of an operation.
///
/// An observer is made of closures instead of protocol methods with default bodies, because a misspelt method would
/// silently never be called.
///
/// ```swift
/// operation.addObserver(OperationObserver(didFinish: { print($0.name ?? "?", "is done") }))
/// ```
///
/// An operation releases its observers when it has finished, so a closure may refer to the operation.
public struct OperationObserver: Sendable {
  let didStart: (@Sendable (AsyncOperation) -> Void)?
  let didCancel: (@Sendable (AsyncOperation) -> Void)?
  let didFinish: (@Sendable (AsyncOperation) -> Void)?

  /// Creates an observer.
  ///
  /// - Parameters:
  ///   - didStart: Called when execution starts, on the executing thread, before `execute()`. Not called for an operation
  ///     that never executes. An operation that is cancelled or finished by this closure does not execute.
  ///   - didCancel: Called once, on the cancelling thread, even before the operation has started. It is called before the
  ///     operation's ``AsyncOperation/didCancel()`` and before the members of a group are cancelled.
  ///   - didFinish: Called once, on the finishing thread, after `isFinished` is true, even if the operation was cancelled.
  ///     An `AsyncOperation` that depends on this one starts after the closure has returned.
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
