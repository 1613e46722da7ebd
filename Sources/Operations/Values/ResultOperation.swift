/// An operation that finishes with a value.
///
/// ```swift
/// let length = try await queue.run(ResultOperation { try Data(contentsOf: url).count })
/// ```
///
/// Create the operation with a closure that returns the value, or write a subclass. The subclass overrides
/// ``AsyncOperation/execute()`` and calls ``finish(returning:)`` on any thread.
///
/// Finishing without a value is an error with the code ``OperationError/Code/outputMissing``, unless the operation was
/// cancelled or its `Output` is `Void`.
open class ResultOperation<Output: Sendable>: AsyncOperation, OutputOperation, @unchecked Sendable {
  /// The value. Guarded by the lock of the core, and set together with the transition that makes it valid.
  private var storedOutput: Output?
  /// The closure. Removed by the thread that executes the operation, or that finishes it unexecuted. The lifecycle
  /// ensures that only one thread does.
  private var work: (@Sendable () throws -> Output)?

  /// Creates an operation for a subclass that overrides ``AsyncOperation/execute()``.
  public override init() { super.init() }

  /// Creates an operation that runs `work` on a thread of its queue, and finishes with the value it returns or the
  /// error it throws.
  public init(_ work: @escaping @Sendable () throws -> Output) {
    self.work = work
    super.init()
  }

  /// The outcome of the operation. Nil until the operation has ended.
  ///
  /// The outcome is the value, the error, or an ``AggregateError`` of several errors. It is `CancellationError` if the
  /// operation was cancelled without an error.
  public final var result: Result<Output, any Error>? {
    let (phase, output) = core.withLock { ($0.lifecycle.phase, storedOutput) }
    switch phase {
    case .pending, .preparing, .evaluating, .executing, .skipped: return nil
    case .ending, .finished: break
    }
    if let error = outcomeError { return .failure(error) }
    return output.map { .success($0) } ?? .failure(outputMissingError)
  }

  /// The value. Reading it waits until the operation has finished, and throws if the operation has no value.
  ///
  /// Any number of tasks can read the value, before or after the operation finishes. Cancelling a reading task neither
  /// cancels the operation nor ends the wait.
  public final var value: Output {
    get async throws {
      await finished()
      return try output()
    }
  }

  open override func execute() {
    guard let work = work.take() else { return finish() }
    do { finish(returning: try work()) } catch { finish(with: error) }
  }

  /// Whether the operation always calls `finish`. A subclass may omit the call.
  override var finishesByItself: Bool { type(of: self) == ResultOperation.self }

  override func releaseWork() { _ = work.take() }

  /// Finishes the operation with a value. The first finish of any kind counts; later ones are ignored.
  ///
  /// - Returns: Whether this call counted.
  @discardableResult
  public final func finish(returning output: Output) -> Bool {
    let finish = core.withLock { core in
      let finish = core.finish()
      if finish.action != .ignore { storedOutput = output }
      return finish
    }
    carryOut(finish)
    return finish.action != .ignore
  }

  /// Finishes the operation with a value or an error.
  public final func finish(with result: Result<Output, any Error>) {
    switch result {
    case .success(let output): finish(returning: output)
    case .failure(let error): finish(with: error)
    }
  }

  final override func complete(with errors: [any Error]) {
    if errors.isEmpty {
      if Output.self == Void.self, let nothing = () as? Output {
        finish(returning: nothing)
        return
      }
      if !isCancelled {
        let report = FailureReport(unlessCancelled: outputMissingError)
        return carryOut(core.withLock { $0.finish(report) })
      }
    }
    super.complete(with: errors)
  }
}

/// An operation that runs a synchronous closure on a thread of its queue, with the task-local values of the task that
/// created the operation.
///
/// If a task created the operation, `Task.isCancelled` in the closure is true when the operation has been cancelled.
final class ClosureOperation<Output: Sendable>: ResultOperation<Output>, @unchecked Sendable {
  /// The closure. Removed when the operation executes or ends.
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
