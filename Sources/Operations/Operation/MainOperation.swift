/// An operation that executes on the main actor, in any queue or group.
///
/// Use it for work that belongs to the user interface. For example, a dialog executes until the user answers:
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
/// In a module with main-actor isolation by default, declare the subclass `nonisolated` and the override `@MainActor`.
///
/// The main thread must process its queue: in the run loop of an app, in `dispatchMain()`, or in an asynchronous
/// `main`. The work has no task-local values, except those of a task that calls `start()`.
open class MainOperation: AsyncOperation, @unchecked Sendable {
  /// Accessed only on the main actor.
  private var body: (@MainActor @Sendable (MainOperation) -> Void)?

  /// Creates an operation for a subclass that overrides ``executeOnMain()``.
  public override init() { super.init() }

  /// Creates an operation that runs a closure on the main actor.
  ///
  /// - Parameter body: Starts the work, and calls `finish` on the operation, at once or later, on any thread.
  public convenience init(_ body: @escaping @MainActor @Sendable (MainOperation) -> Void) {
    self.init()
    self.body = body
  }

  /// Starts the work. Call `finish` on any thread when the work is done.
  ///
  /// Called at most once, on the main actor, soon after execution has started. Not called if the operation is cancelled
  /// or finished before. ``AsyncOperation/didCancel()`` may therefore be called before this method, or without it. The
  /// default implementation finishes the operation.
  @MainActor open func executeOnMain() { if let body = body.take() { body(self) } else { finish() } }

  public final override func execute() {
    Task { @MainActor in
      if isExecuting, !isCancelled { return executeOnMain() }
      body = nil
      finish()
    }
  }

  override func willNotExecute() { body = nil }
}
