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
    // They are what they were here: casts that look would look up the types of generic classes at every hand-over.
    obstacle = { producer in
      switch unsafe unsafeDowncast(producer, to: Producer.self).result {
      case .success?: nil
      case .failure(let error)?: error
      case nil: producer.outputMissingError
      }
    }
    transfer = { producer, consumer in
      guard case .success(let value)? = unsafe unsafeDowncast(producer, to: Producer.self).result else { return }
      write(unsafe unsafeDowncast(consumer, to: Consumer.self), value)
    }
  }

  func carryOut(to consumer: AsyncOperation) { transfer(producer, consumer) }

  /// Why a consumer that cannot do without the value does not get it.
  var missingInput: MissingInput? {
    guard policy == .required, let cause = obstacle(producer) else { return nil }
    return MissingInput(producer: producer, cause: cause)
  }
}
