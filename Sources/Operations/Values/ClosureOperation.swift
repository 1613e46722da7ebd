/// An operation that runs a synchronous closure on a thread of its queue, with the task-local values of the task that
/// created the operation.
///
/// If a task created the operation, `Task.isCancelled` in the closure is true when the operation has been cancelled.
final class ClosureOperation<Output: Sendable>: ResultOperation<Output>, @unchecked Sendable {
  /// The closure. It is taken when the operation executes or, if it never does, at its end.
  private var body: (@Sendable () throws -> Output)?
  private var context: TaskContext?

  override init(_ body: @escaping @Sendable () throws -> Output) {
    self.body = body
    context = TaskContext()
    super.init()
  }

  override func execute() {
    let (body, context) = takeBody()
    guard let body else { return finish() }
    guard let context else { return finish(with: Result(catching: body)) }
    adopt(context.task, while: .executing)
    var result: Result<Output, any Error>?
    context.run { result = Result(catching: body) }
    if let result { finish(with: result) } else { finish() }
  }

  override var finishesByItself: Bool { true }

  override func releaseWork() { _ = takeBody() }

  private func takeBody() -> ((@Sendable () throws -> Output)?, TaskContext?) { (body.take(), context.take()) }
}
