/// An operation whose work is an asynchronous function.
///
/// ```swift
/// let page = TaskOperation { try await session.data(from: url).0 }
/// ```
///
/// Create the operation with a closure, or write a subclass that overrides ``run()``.
///
/// ## Threads
///
/// The work runs in its own task and holds no thread of the queue: a thousand waiting task operations need two threads.
/// Each operation occupies one of the queue's `maxConcurrentOperationCount` slots.
///
/// ## Cancellation
///
/// Cancelling the operation cancels the task. Cancelling the task from inside cancels the operation, and so does
/// throwing a `CancellationError`. The operation finishes when the work has returned.
///
/// ## Task-local values
///
/// The work inherits the task-local values of the task that creates the operation, such as the context of a log or a
/// trace. An operation that is created outside of any task inherits none.
open class TaskOperation<Output: Sendable>: ResultOperation<Output>, @unchecked Sendable {
  /// 0 for that of the group or the thread. Not a `TaskPriority`, whose size the program finds out when it runs.
  private let priority: UInt8
  private var body: (@Sendable () async throws -> Output)?

  /// Creates an operation for a subclass that overrides ``run()``.
  ///
  /// - Parameter priority: The priority of the task. The default is that of the group or, in no group, of the thread that
  ///   starts the operation.
  public init(priority: TaskPriority? = nil) {
    self.priority = priority?.rawValue ?? 0
    super.init(in: TaskContext())
  }

  /// Creates an operation that runs an asynchronous function in a task, and finishes with its value or its error.
  ///
  /// The default priority of the task is that of the group or, in no group, of the thread that starts the operation.
  public init(
    priority: TaskPriority? = nil,
    _ body: @escaping @Sendable () async throws -> Output,
    file: StaticString = #fileID,
    line: UInt = #line
  ) {
    self.priority = priority?.rawValue ?? 0
    self.body = body
    super.init(in: TaskContext(), EventOrigin(file: file, line: line))
  }

  /// Runs the work. Called at most once, in the operation's task. Do not call super.
  open func run() async throws -> Output {
    misuse("\(quotedName) has nothing to run: override run(), or give it a closure.")
  }

  public final override func execute() {
    let body = body ?? { try await self.run() }
    self.body = nil
    finishByTask(priority: priority, body)
  }

  final override var beginsElsewhere: Bool { true }

  final override func willNotExecute() { _ = (body.take(), context.take()) }
}

extension ResultOperation {
  /// Finishes with the result of a closure of the user. Without a `Result`, whose layout the program looks up when it runs.
  final func finish(byCalling body: () throws -> Output) {
    var output: Output?
    var failure: (any Error)?
    call(in: context.take() ?? TaskContext(detached: ())) { do { output = try body() } catch { failure = error } }
    if let output { finish(returning: output) } else if let failure { finish(with: failure) }
  }

  /// Finishes with the result of `body` in a task. Cancelling the operation or the task also cancels the other.
  final func finishByTask(priority: UInt8 = 0, _ body: @escaping @Sendable () async throws -> Output) {
    startTask(priority: priority, in: context.take(), while: .executing) { [self] in
      do {
        let output = try await withTaskCancellationHandler(operation: body) { cancel() }
        releaseTask()
        finish(returning: output)
      } catch {
        releaseTask()
        if error is CancellationError {
          cancel()
          finish()
        } else {
          finish(with: error)
        }
      }
    }
  }
}
