extension OutputOperation {
  /// Makes `consumer` wait for this operation, and gives it the value as its input just before it executes.
  ///
  /// ```swift
  /// download.pass(to: parse).pass(to: store)
  /// ```
  ///
  /// There is no operation in between that could be forgotten. What is passed to one consumer is handed over one after
  /// the other, in the order of the `pass` calls, on the thread on which it then executes; a consumer that has been
  /// cancelled gets nothing. If there is no value the consumer is cancelled, with
  /// ``OperationError/Code/inputUnavailable``.
  ///
  /// - Precondition: `consumer` is another operation and has not been started.
  /// - Returns: The consumer.
  @discardableResult
  public func pass<C: InputOperation>(to consumer: C) -> C where C.Input == Output {
    pass(to: consumer, input: .required)
  }

  /// The same, where `policy` says what becomes of the consumer if there is no value.
  @discardableResult
  public func pass<C: InputOperation>(to consumer: C, input policy: InputPolicy) -> C where C.Input == Output {
    pass(to: consumer, input: policy) { consumer, value in consumer.input = value }
  }

  /// The same for a consumer whose input is optional: nil if there is no value, and `policy` lets it execute.
  @discardableResult
  public func pass<C: InputOperation>(to consumer: C, input policy: InputPolicy = .required) -> C
  where C.Input == Output? {
    pass(to: consumer, input: policy) { consumer, value in consumer.input = value }
  }

  /// Makes `consumer` wait for this operation, and calls `write` with it and the value just before it executes.
  ///
  /// ```swift
  /// left.pass(to: sum) { sum, value in sum.left = value }
  /// right.pass(to: sum) { sum, value in sum.right = value }
  /// ```
  ///
  /// Two writes to one consumer never run at once. `write` should not refer to this operation, which would keep it
  /// alive: it gets what it needs.
  ///
  /// - Precondition: `consumer` is another operation and has not been started.
  /// - Returns: The consumer.
  @discardableResult
  public func pass<C: AsyncOperation>(to consumer: C, _ write: @escaping @Sendable (C, Output) -> Void) -> C {
    pass(to: consumer, input: .required, write)
  }

  /// The same, where `policy` says what becomes of the consumer if there is no value.
  @discardableResult
  public func pass<C: AsyncOperation>(
    to consumer: C,
    input policy: InputPolicy,
    _ write: @escaping @Sendable (C, Output) -> Void
  ) -> C {
    consumer.refuseSelfDependency(self)
    // Before the dependency: this operation may have finished, and the consumer be in a queue.
    let handOver = HandOver(from: self, policy: policy, write)
    consumer.core.withLock { $0.makeExtras().handOvers.append(handOver) }
    return consumer.waits(for: self)
  }
}
