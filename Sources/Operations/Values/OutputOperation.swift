import Foundation

/// An operation that finishes with a value or an error.
public protocol OutputOperation<Output>: AsyncOperation {
  /// The type of the value.
  associatedtype Output: Sendable

  /// The value or the error of the operation. Nil until the operation finishes, and set before `isFinished` turns true.
  var result: Result<Output, any Error>? { get }
}

extension OutputOperation {
  /// The result of the operation, which has finished.
  var outcome: Result<Output, any Error> { result ?? .failure(outputMissingError) }
}

extension AsyncOperation {
  var outputMissingError: OperationError {
    OperationError(.outputMissing, "\(quotedName) finished without a value. Call finish(returning:) with one.")
  }
}

struct AnyOutputOperation<Output: Sendable>: Sendable {
  let operation: AsyncOperation
  /// Returns the result of the operation, which has finished. The closure does not capture the operation.
  let outcome: @Sendable (AsyncOperation) -> Result<Output, any Error>

  init<Base: OutputOperation>(_ operation: Base) where Base.Output == Output {
    self.operation = operation
    outcome = { unsafe unsafeDowncast($0, to: Base.self).outcome }
  }

  init(anyOperation operation: AsyncOperation) where Output == Void {
    self.operation = operation
    outcome = { $0.outcomeError.map { .failure($0) } ?? .success(()) }
  }

  var result: Result<Output, any Error> { outcome(operation) }
}

extension OutputOperation {
  /// Returns an operation that transforms the value of this operation.
  ///
  /// The returned operation depends on this one, and must be enqueued like any other one. `queue.run` enqueues both.
  ///
  /// ```swift
  /// let words = try await queue.run(download.map { $0.split(separator: " ").count })
  /// ```
  public func map<T: Sendable>(_ transform: @escaping @Sendable (Output) throws -> T) -> TransformOperation<Output, T> {
    pass(to: TransformOperation(transform))
  }

  /// Returns an operation that transforms the value of this operation with an asynchronous function.
  ///
  /// The function runs in a task that is cancelled with the operation.
  public func map<T: Sendable>(
    _ transform: @escaping @Sendable (Output) async throws -> T
  ) -> TransformOperation<Output, T> {
    pass(to: TransformOperation(transform))
  }

  /// Calls `body` with the result when the operation has finished in any way, or at once if it has finished.
  ///
  /// `body` is called once, on the finishing thread, after `isFinished` is true.
  public func onFinish(_ body: @escaping @Sendable (Result<Output, any Error>) -> Void) {
    let outcome = AnyOutputOperation(self).outcome
    addObserver(OperationObserver(didFinish: { body(outcome($0)) }))
  }

  /// Calls `body` on the main actor with the result when the operation has finished in any way.
  ///
  /// ```swift
  /// loadProfile.onFinishOnMain { result in screen.show(result) }
  /// ```
  ///
  /// `body` is called once, soon after `isFinished` is true, and never before this method has returned. Several
  /// closures are called in the order in which their operations finished, and released on the main thread.
  public func onFinishOnMain(_ body: __owned @escaping @MainActor @Sendable (Result<Output, any Error>) -> Void) {
    onFinish(MainClosure(consume body).call)
  }

  /// Makes `consumer` depend on this operation, and passes the value as its input.
  ///
  /// ```swift
  /// download.pass(to: parse).pass(to: store)
  /// ```
  ///
  /// The value is written just before the consumer executes, on the consumer's thread. Several values are written one
  /// after the other, in the order of the `pass` calls. A cancelled consumer receives no value. If the producer finishes
  /// without one, the consumer is cancelled at once with ``OperationError/Code/inputUnavailable``, whatever it waits for.
  ///
  /// - Precondition: `consumer` is another operation and has not been started.
  /// - Parameters:
  ///   - consumer: The operation that receives the value.
  ///   - policy: Whether the consumer executes if there is no value.
  /// - Returns: The consumer.
  @discardableResult
  public func pass<C: InputOperation>(to consumer: C, input policy: InputPolicy = .required) -> C
  where C.Input == Output {
    pass(to: consumer, input: policy) { consumer, value in consumer.input = value }
  }

  /// Makes `consumer`, whose input is optional, depend on this operation, and passes the value as its input.
  ///
  /// - Parameters:
  ///   - consumer: The operation that receives the value. Its input stays nil if there is no value.
  ///   - policy: Whether the consumer executes if there is no value.
  @discardableResult
  public func pass<C: InputOperation>(to consumer: C, input policy: InputPolicy = .required) -> C
  where C.Input == Output? {
    pass(to: consumer, input: policy) { consumer, value in consumer.input = value }
  }

  /// Makes `consumer` depend on this operation, and calls `write` with the consumer and the value.
  ///
  /// ```swift
  /// left.pass(to: sum) { sum, value in sum.left = value }
  /// right.pass(to: sum) { sum, value in sum.right = value }
  /// ```
  ///
  /// The calls for one consumer run one after the other, just before the consumer executes, on the consumer's thread.
  /// Do not capture this operation in `write`, because the closure would keep it alive.
  ///
  /// - Precondition: `consumer` is another operation and has not been started.
  /// - Parameters:
  ///   - consumer: The operation that receives the value.
  ///   - policy: Whether the consumer executes if there is no value.
  ///   - write: Writes the value to the consumer, just before the consumer executes.
  /// - Returns: The consumer.
  @discardableResult
  public func pass<C: AsyncOperation>(
    to consumer: C,
    input policy: InputPolicy = .required,
    _ write: @escaping @Sendable (C, Output) -> Void
  ) -> C {
    consumer.refuseSelfDependency(self)
    // The generic parameters guarantee the types. A checked cast would look up generic classes at every hand-over.
    let handOver = HandOver(
      producer: self,
      obstacle: { producer in
        guard policy == .required, case .failure(let error) = unsafe unsafeDowncast(producer, to: Self.self).outcome
        else { return nil }
        return error
      },
      transfer: { producer, consumer in
        guard case .success(let value)? = unsafe unsafeDowncast(producer, to: Self.self).result else { return }
        write(unsafe unsafeDowncast(consumer, to: C.self), value)
      }
    )
    // Before the dependency, because the consumer may start at once if this operation has finished.
    consumer.core.withLock { $0.makeExtras().handOvers.append(handOver) }
    consumer.waits(for: self)
    if policy == .optional { return consumer }
    // The consumer may wait for other producers. The closure keeps neither operation alive.
    whenFinished { [unowned self, weak consumer] in
      if case .failure(let error) = outcome { consumer?.cancelForLack(ofInputFrom: self, because: error) }
    }
    return consumer
  }
}

extension AsyncOperation {
  /// Cancels the operation, unless it has received its inputs, or the dependency on the producer was removed.
  fileprivate func cancelForLack(ofInputFrom producer: AsyncOperation, because cause: any Error) {
    let isInput = core.withLock { core in
      !core.lifecycle.isCancelled && core.extras?.handOvers.entries.contains { $0.producer === producer } == true
    }
    if !isInput { return }
    Trampoline.run { self.cancel(with: OperationError.inputUnavailable(to: self, from: producer, because: cause)) }
  }
}
