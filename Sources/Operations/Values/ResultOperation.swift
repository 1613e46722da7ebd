/// An operation that ends with a value.
///
/// ```swift
/// let length = try await queue.run(ResultOperation { try Data(contentsOf: url).count })
/// ```
///
/// Give it a closure that returns the value, or subclass it, override ``AsyncOperation/execute()`` and call
/// ``finish(returning:)`` from any thread. Finishing without a value is an error,
/// ``OperationError/Code/outputMissing``, unless the operation was cancelled or its `Output` is `Void`.
open class ResultOperation<Output: Sendable>: AsyncOperation, OutputOperation, @unchecked Sendable {
  /// Guarded by the lock of the core, and set together with the transition that makes it count.
  private var storedOutput: Output?
  /// Taken by execution or, if that never comes, by the end: the lifecycle sees to it that there is only one of them.
  private var work: (@Sendable () throws -> Output)?

  /// For subclasses, which override ``AsyncOperation/execute()``.
  public override init() { super.init() }

  /// An operation that runs `work` on its queue's thread and finishes with what it returns or throws.
  public init(_ work: @escaping @Sendable () throws -> Output) {
    self.work = work
    super.init()
  }

  /// How the operation ended: its value; its error, or an ``AggregateError`` of several; `CancellationError` if it was
  /// cancelled without one. Nil until then.
  public final var result: Result<Output, any Error>? {
    let (phase, output) = core.withLock { ($0.lifecycle.phase, storedOutput) }
    switch phase {
    case .pending, .preparing, .evaluating, .executing, .skipped: return nil
    case .ending, .finished: break
    }
    if let error = outcomeError { return .failure(error) }
    return output.map { .success($0) } ?? .failure(outputMissingError)
  }

  /// The value, when there is one. May be awaited by many, before the end or after it.
  ///
  /// Cancelling an awaiting task does not cancel the operation, and the wait ends with the operation.
  public final var value: Output {
    get async throws {
      await finished()
      return try output()
    }
  }

  open override func execute() {
    guard let work = takeWork() else { return finish() }
    do { finish(returning: try work()) } catch { finish(with: error) }
  }

  /// Of a subclass nobody knows.
  override var finishesByItself: Bool { type(of: self) == ResultOperation.self }

  override func dropWork() { _ = takeWork() }

  private func takeWork() -> (@Sendable () throws -> Output)? {
    defer { work = nil }
    return work
  }

  /// The work is done, and this is its value. The first finish counts, of whatever kind; later ones are ignored.
  ///
  /// - Returns: Whether this one counted.
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

  /// The work is done, one way or the other.
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
