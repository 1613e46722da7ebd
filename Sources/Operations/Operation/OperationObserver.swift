import Foundation

/// Closures that are called at the lifecycle events of an operation.
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
  ///   - didStart: Called when execution starts, on the executing thread, before `execute()`. Not called for an
  ///     operation that never executes. If the closure cancels or finishes the operation, `execute()` is not called.
  ///   - didCancel: Called once, on the cancelling thread, even before the operation has started. It is called before
  ///     the operation's ``AsyncOperation/didCancel()`` and before the members of a group are cancelled.
  ///   - didFinish: Called once, on the finishing thread, after `isFinished` is true, even if the operation was
  ///     cancelled. An `AsyncOperation` that depends on this one starts after the closure has returned.
  public init(
    didStart: (@Sendable (AsyncOperation) -> Void)? = nil,
    didCancel: (@Sendable (AsyncOperation) -> Void)? = nil,
    didFinish: (@Sendable (AsyncOperation) -> Void)? = nil
  ) {
    self.didStart = didStart
    self.didCancel = didCancel
    self.didFinish = didFinish
  }

  /// Returns an observer whose closures are called on the main actor, each soon after its event.
  ///
  /// ```swift
  /// operation.addObserver(.onMain(didFinish: { screen.show($0.errors) }))
  /// ```
  ///
  /// The operation does not wait for the closures: when `didStart` is called, the operation may have finished. The
  /// closures are released on the main thread.
  public static func onMain(
    didStart: (@MainActor @Sendable (AsyncOperation) -> Void)? = nil,
    didCancel: (@MainActor @Sendable (AsyncOperation) -> Void)? = nil,
    didFinish: (@MainActor @Sendable (AsyncOperation) -> Void)? = nil
  ) -> Self {
    Self(
      didStart: didStart.map { MainClosure($0).call },
      didCancel: didCancel.map { MainClosure($0).call },
      didFinish: didFinish.map { MainClosure($0).call }
    )
  }
}

extension AsyncOperation {
  /// Adds an observer of the operation's lifecycle events. Observers are notified in the order they were added.
  ///
  /// A late observer is notified of later events only. If the operation has finished, `didFinish` is called at once.
  public final func addObserver(_ observer: OperationObserver) {
    let isLate = core.withLock { core in
      if core.lifecycle.phase == .finished { return true }
      core.observers.append(observer)
      return false
    }
    if isLate { observer.didFinish?(self) }
  }

  /// A plain Foundation operation has no observers.
  final func addObservers(_ observers: [OperationObserver]) {
    if !(self is PlainMember) { for observer in observers { addObserver(observer) } }
  }

  var trace: [OperationFollower] { core.withLock { $0.trace } }
}
