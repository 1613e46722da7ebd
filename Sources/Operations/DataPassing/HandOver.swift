/// A value that one operation is to give to another just before that executes.
///
/// Its closures refer to neither: the ledger lets go of long chains without recursion, and closures would not.
struct HandOver: Sendable {
  let producer: AsyncOperation
  private let policy: InputPolicy
  /// Why there is no value.
  private let obstacle: @Sendable (_ producer: AsyncOperation) -> (any Error)?
  /// Gives the value to the consumer, if there is one.
  private let transfer: @Sendable (_ producer: AsyncOperation, _ consumer: AsyncOperation) -> Void

  init<Producer: OutputOperation, Consumer: AsyncOperation>(
    from producer: Producer,
    policy: InputPolicy,
    _ write: @escaping @Sendable (Consumer, Producer.Output) -> Void
  ) {
    self.producer = producer
    self.policy = policy
    obstacle = { producer in
      switch (producer as? Producer)?.result {
      case .success?: nil
      case .failure(let error)?: error
      case nil: producer.outputMissingError
      }
    }
    transfer = { producer, consumer in
      guard let producer = producer as? Producer, let consumer = consumer as? Consumer else { return }
      if case .success(let value)? = producer.result { write(consumer, value) }
    }
  }

  func carryOut(to consumer: AsyncOperation) { transfer(producer, consumer) }

  /// The error of a consumer that cannot do without the value, if there is none.
  func failure(of consumer: AsyncOperation) -> OperationError? {
    guard policy == .required, let cause = obstacle(producer) else { return nil }
    return .inputUnavailable(to: consumer, from: producer, because: cause)
  }
}
