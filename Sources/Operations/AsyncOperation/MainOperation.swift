/// An operation whose work belongs on the main actor, whatever queue or group it is in: a dialog, say, that is
/// executing until it has been answered.
///
/// ```swift
/// final class Alert: MainOperation, @unchecked Sendable {
///   private let text: String
///
///   init(_ text: String) { self.text = text }
///
///   override func executeOnMain() {
///     Screen.shared.show(text) { [self] in finish() }
///   }
/// }
/// ```
///
/// In a module that is main-actor by default the class is `nonisolated`, and the override says `@MainActor` again.
///
/// It needs a main thread that goes on: the run loop of an app, `dispatchMain()`, or a `main` that is asynchronous.
open class MainOperation: AsyncOperation, @unchecked Sendable {
  /// Begins the work. Call `finish` from any thread when it is done, once, here or later.
  ///
  /// Called once at most, on the main actor, soon after execution has begun; not if the operation has been cancelled or
  /// finished meanwhile. So ``AsyncOperation/didCancel()`` may come first. The default finishes at once.
  @MainActor open func executeOnMain() { finish() }

  public final override func execute() {
    Task { @MainActor in
      if isCancelled { return finish() }
      if isExecuting { executeOnMain() }
    }
  }
}
