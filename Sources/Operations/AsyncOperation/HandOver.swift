/// Passes the value of a producer to a consumer, just before the consumer executes.
///
/// The closures capture neither operation. A long chain of operations is released without recursion, which captured
/// references would prevent.
struct HandOver: Sendable {
  let producer: AsyncOperation
  /// Whether the consumer needs the value to execute.
  let isRequired: Bool
  /// Returns the reason why there is no value, or nil if there is one.
  let obstacle: @Sendable (_ producer: AsyncOperation) -> (any Error)?
  /// Writes the value, if there is one, to the consumer.
  let transfer: @Sendable (_ producer: AsyncOperation, _ consumer: AsyncOperation) -> Void

  func carryOut(to consumer: AsyncOperation) { transfer(producer, consumer) }

  /// The missing value, if the consumer needs it.
  var missingInput: MissingInput? {
    guard isRequired, let cause = obstacle(producer) else { return nil }
    return MissingInput(producer: producer, cause: cause)
  }
}
