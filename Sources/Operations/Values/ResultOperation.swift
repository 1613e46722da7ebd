/// An operation that finishes with a value.
///
/// ```swift
/// let length = try await queue.run(ResultOperation { try Data(contentsOf: url).count })
/// ```
///
/// Create the operation with a closure that returns the value, or write a subclass. The subclass overrides
/// ``AsyncOperation/execute()`` and calls ``finish(returning:)`` on any thread. In the closure, `Task.isCancelled` and
/// `Task.checkCancellation()` report whether the operation has been cancelled.
///
/// The closure has no task-local values. Capturing those of the task that creates the operation would make a member of a
/// group cost 27 % more. A ``TaskOperation``, a `map`, and a closure given to `queue.run` or `addTask` have them.
///
/// Finishing without a value is an error with the code ``OperationError/Code/outputMissing``, unless the operation was
/// cancelled or its `Output` is `Void`.
open class ResultOperation<Output: Sendable>: AsyncOperation, OutputOperation, @unchecked Sendable {
  /// The value. Guarded by the lock of the core, and set together with the transition that makes it valid.
  private var storedOutput: Output?
  /// The closure. Removed by the only thread that executes the operation, or finishes it unexecuted.
  private var work: (@Sendable () throws -> Output)?
  /// The task-local values of the closure, which a subclass may keep. Removed with the closure.
  final var context: TaskContext?
  // The line is 0 if there was no closure, because an optional would be larger.
  private let place: EventOrigin

  /// Creates an operation for a subclass that overrides ``AsyncOperation/execute()``.
  public override init() {
    place = EventOrigin(file: "", line: 0)
    super.init()
  }

  /// Creates an operation that runs `work` on a thread of its queue, and finishes with the value it returns or the
  /// error it throws. A `CancellationError` is an error like any other.
  public init(_ work: @escaping @Sendable () throws -> Output, file: StaticString = #fileID, line: UInt = #line) {
    self.work = work
    place = EventOrigin(file: file, line: line)
    super.init()
  }

  init(
    in context: TaskContext?,
    _ origin: EventOrigin = EventOrigin(file: "", line: 0),
    _ work: (@Sendable () throws -> Output)? = nil
  ) {
    self.work = work
    self.context = context
    place = origin
    super.init()
  }

  /// The outcome of the operation. Nil until the operation has ended.
  ///
  /// The outcome is the value, the error, or an ``AggregateError`` of several errors. It is `CancellationError` if the
  /// operation was cancelled without an error.
  public final var result: Result<Output, any Error>? {
    core.withLock { $0.lifecycle.phase.isOver } ? Result { try finalOutput } : nil
  }

  /// The value of the operation, which has ended, so that the value does not change.
  private var finalOutput: Output {
    get throws {
      if let error = outcomeError { throw error }
      guard let storedOutput else { throw outputMissingError }
      return storedOutput
    }
  }

  /// The value. Reading it waits until the operation has finished, and throws if the operation has no value.
  ///
  /// Any number of tasks can read the value, before or after the operation finishes. Cancelling a reading task ends its
  /// wait with a `CancellationError`, and does not cancel the operation.
  public final var value: Output {
    get async throws {
      try await awaitEnd()
      return try finalOutput
    }
  }

  open override func execute() {
    guard let work else { return finish() }
    // Not by `take()`, which needs the type of the closure when the program runs.
    self.work = nil
    finish(byCalling: work)
  }

  /// A subclass may omit the call.
  override var finishesByItself: Bool { type(of: self) == ResultOperation.self || super.finishesByItself }

  override func willNotExecute() { _ = (work.take(), context.take()) }

  final override var origin: EventOrigin? { place.line > 0 ? place : nil }

  /// Finishes the operation with a value. The first finish of any kind counts; later ones are ignored.
  ///
  /// - Returns: Whether this call counted.
  @discardableResult
  public final func finish(returning output: Output) -> Bool {
    finish(reporting: nil) { storedOutput = output }
  }

  /// Finishes the operation with a value or an error.
  public final func finish(with result: Result<Output, any Error>) {
    switch result {
    case .success(let output): finish(returning: output)
    case .failure(let error): finish(with: error)
    }
  }

  final override func requestFinish(with errors: [any Error]) {
    if errors.isEmpty, Output.self == Void.self, let nothing = () as? Output {
      finish(returning: nothing)
    } else if errors.isEmpty, !isCancelled {
      finish(reporting: FailureReport(unlessCancelled: outputMissingError))
    } else {
      super.requestFinish(with: errors)
    }
  }
}
