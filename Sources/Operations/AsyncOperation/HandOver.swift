/// A value that one operation is to give to another just before that executes.
///
/// Its closures refer to neither: the ledger lets go of long chains without recursion, and closures would not.
struct HandOver: Sendable {
  let producer: AsyncOperation
  /// The consumer does not execute without the value.
  let isRequired: Bool
  /// Why there is no value.
  let obstacle: @Sendable (_ producer: AsyncOperation) -> (any Error)?
  /// Gives the value to the consumer, if there is one.
  let transfer: @Sendable (_ producer: AsyncOperation, _ consumer: AsyncOperation) -> Void

  func carryOut(to consumer: AsyncOperation) { transfer(producer, consumer) }

  /// Why a consumer that cannot do without the value does not get it.
  var missingInput: MissingInput? {
    guard isRequired, let cause = obstacle(producer) else { return nil }
    return MissingInput(producer: producer, cause: cause)
  }
}
