/// An operation whose work is an asynchronous function.
///
/// ```swift
/// let page = TaskOperation { try await session.data(from: url).0 }
/// ```
///
/// Give it a closure, or subclass it and override ``run()``. The work runs in a task of its own: it holds no thread of
/// the queue, so a thousand of them wait on two threads, though each keeps its place among the queue's
/// `maxConcurrentOperationCount`.
///
/// Cancelling the operation cancels the task, and cancelling the task from inside cancels the operation, as does
/// throwing a `CancellationError`. The operation finishes when the work has returned.
///
/// The work sees the task-local values of the task that creates the operation, such as the context of a log or a trace.
/// An operation that is created outside of any task inherits none.
open class TaskOperation<Output: Sendable>: ResultOperation<Output>, @unchecked Sendable {
  private let priority: TaskPriority?
  /// Taken by execution or, if that never comes, by the end.
  private var body: (@Sendable () async throws -> Output)?
  private var context = TaskContext()

  /// For subclasses, which override ``run()``.
  ///
  /// - Parameter priority: The task's. By default that of the thread which starts the operation.
  public init(priority: TaskPriority? = nil) {
    self.priority = priority
    super.init()
  }

  /// An operation that runs a function in a task and finishes with what it returns or throws.
  ///
  /// - Parameters:
  ///   - priority: The task's. By default that of the thread which starts the operation.
  ///   - body: Called once at most.
  public init(priority: TaskPriority? = nil, _ body: @escaping @Sendable () async throws -> Output) {
    self.priority = priority
    self.body = body
    super.init()
  }

  /// The work. Called once at most, in the operation's task; do not call super.
  open func run() async throws -> Output {
    misuse("\(quotedName) has nothing to run: override run(), or give it a closure.")
  }

  public final override func execute() {
    let (body, context) = takeWork()
    let work = body ?? { try await self.run() }
    guard let context else { return finishByTask(priority: priority, work) }
    let priority = priority ?? TaskContext.currentPriority
    context.run { finishByTask(priority: priority, work) }
  }

  final override var finishesByItself: Bool { true }

  final override func dropWork() { _ = takeWork() }

  private func takeWork() -> ((@Sendable () async throws -> Output)?, TaskContext?) { (body.take(), context.take()) }
}

extension ResultOperation {
  /// Finishes with what `body` returns or throws, in a task that is cancelled with the operation, and the operation
  /// with it.
  final func finishByTask(priority: TaskPriority?, _ body: @escaping @Sendable () async throws -> Output) {
    adopt(
      Task(priority: priority) {
        let result: Result<Output, any Error>
        do {
          let output = try await withTaskCancellationHandler {
            try await body()
          } onCancel: {
            self.cancel()
          }
          result = .success(output)
        } catch { result = .failure(error) }
        if case .failure(is CancellationError) = result {
          self.cancel()
          self.finish()
        } else {
          self.finish(with: result)
        }
      },
      while: .executing
    )
  }
}
