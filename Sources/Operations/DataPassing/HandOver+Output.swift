extension HandOver {
  init<Producer: OutputOperation, Consumer: AsyncOperation>(
    from producer: Producer,
    policy: InputPolicy,
    _ write: @escaping @Sendable (Consumer, Producer.Output) -> Void
  ) {
    // They are what they were here: casts that look would look up the types of generic classes at every hand-over.
    self.init(
      producer: producer,
      isRequired: policy == .required,
      obstacle: { producer in
        switch unsafe unsafeDowncast(producer, to: Producer.self).result {
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
