extension OutputOperation {
  /// Makes `consumer` depend on this operation, and passes the value as its input.
  ///
  /// ```swift
  /// download.pass(to: parse).pass(to: store)
  /// ```
  ///
  /// The value is written just before the consumer executes, on the consumer's thread. Several values are written one
  /// after the other, in the order of the `pass` calls. A cancelled consumer receives no value. If the producer has no
  /// value, the consumer is cancelled with ``OperationError/Code/inputUnavailable``.
  ///
  /// - Precondition: `consumer` is another operation and has not been started.
  /// - Returns: The consumer.
  @discardableResult
  public func pass<C: InputOperation>(to consumer: C) -> C where C.Input == Output {
    pass(to: consumer, input: .required)
  }

  /// Makes `consumer` depend on this operation, and passes the value as its input.
  ///
  /// - Parameters:
  ///   - consumer: The operation that receives the value.
  ///   - policy: Whether the consumer executes if there is no value.
  @discardableResult
  public func pass<C: InputOperation>(to consumer: C, input policy: InputPolicy) -> C where C.Input == Output {
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
  /// - Returns: The consumer.
  @discardableResult
  public func pass<C: AsyncOperation>(to consumer: C, _ write: @escaping @Sendable (C, Output) -> Void) -> C {
    pass(to: consumer, input: .required, write)
  }

  /// Makes `consumer` depend on this operation, and calls `write` with the consumer and the value.
  ///
  /// - Parameters:
  ///   - consumer: The operation that receives the value.
  ///   - policy: Whether the consumer executes if there is no value.
  ///   - write: Writes the value to the consumer, just before the consumer executes.
  @discardableResult
  public func pass<C: AsyncOperation>(
    to consumer: C,
    input policy: InputPolicy,
    _ write: @escaping @Sendable (C, Output) -> Void
  ) -> C {
    consumer.refuseSelfDependency(self)
    // The hand-over is added before the dependency, because the consumer may start at once if this operation has
    // finished.
    let handOver = HandOver(from: self, policy: policy, write)
    consumer.core.withLock { $0.makeExtras().handOvers.append(handOver) }
    return consumer.waits(for: self)
  }
}

extension HandOver {
  init<Producer: OutputOperation, Consumer: AsyncOperation>(
    from producer: Producer,
    policy: InputPolicy,
    _ write: @escaping @Sendable (Consumer, Producer.Output) -> Void
  ) {
    // The generic parameters guarantee the types. A checked cast would look up generic classes at every hand-over.
    self.init(
      producer: producer,
      obstacle: { producer in
        if policy != .required { return nil }
        return switch unsafe unsafeDowncast(producer, to: Producer.self).result {
        case .success?: nil
        case .failure(let error)?: error
        case nil: producer.outputMissingError
        }
      },
      transfer: { producer, consumer in
        guard case .success(let value)? = unsafe unsafeDowncast(producer, to: Producer.self).result else { return }
        write(unsafe unsafeDowncast(consumer, to: Consumer.self), value)
      }
    )
  }
}
