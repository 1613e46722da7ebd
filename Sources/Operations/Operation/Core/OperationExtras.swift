import Foundation

/// The state that only some operations need.
///
/// It is separate from the core to save memory in other operations, and guarded by the same lock.
final class OperationExtras {
  // MARK: Before execution

  /// The permit that the operation needs to execute once its dependencies have finished.
  var permit: StartPermit?
  var conditions: [OperationCondition] = []
  /// The name of the condition that is being evaluated, or was evaluated last.
  var condition: String?
  /// The values to pass to the operation, in the order of the `pass` calls.
  var handOvers = LedgerList<HandOver>()

  // MARK: Time

  var timeout: Duration?
  var clock: (any Clock<Duration>)?
  /// The timer of the timeout.
  var deadline: ClockTimer?
  /// The current pause, until the operation continues.
  var pause: OperationPause?

  // MARK: Inner operations

  /// The place where the operation executes, if it may leave the thread that started it.
  var place: ExecutionPlace?
  /// A task that works for the operation. It is cancelled when the operation is cancelled, and at its end.
  var task: Task<Void, Never>?
  /// An operation that runs inside this one. It is cancelled when this one is cancelled, and at its end. The search for
  /// cycles treats it as a member.
  var inner: AsyncOperation?

  // MARK: Following

  /// The trace. It is kept after the end, because the traces of dependents report their wait for this operation.
  var trace: OperationTrace?
  var progress: OperationProgress?
  var progressWeight = 1

  var needsPreparation: Bool {
    permit != nil || !conditions.isEmpty || !handOvers.isEmpty || spentTimeout != nil
  }

  /// The timeout, if it is not positive. The operation then does not execute.
  var spentTimeout: Duration? { timeout.flatMap { $0 <= .zero ? $0 : nil } }

  /// Changes a property and returns its old value, which the caller releases after the lock.
  func exchange<Value>(_ property: ReferenceWritableKeyPath<OperationExtras, Value>, _ new: Value) -> Value {
    defer { self[keyPath: property] = new }
    return self[keyPath: property]
  }

  /// The references that an operation releases after its lock, when it has ended.
  struct Remains {
    var permit: StartPermit?
    var conditions: [OperationCondition]
    var handOvers: [HandOver?]
    var deadline: ClockTimer?
    var task: Task<Void, Never>?
    var pause: OperationPause?
    var inner: AsyncOperation?
    var progress: OperationProgress?
    var place: ExecutionPlace?
  }

  func takeRemains() -> Remains {
    defer {
      conditions = []
      (permit, deadline, task, pause, inner, place) = (nil, nil, nil, nil, nil, nil)
    }
    return Remains(
      permit: permit,
      conditions: conditions,
      handOvers: handOvers.takeAll(),
      deadline: deadline,
      task: task,
      pause: pause,
      inner: inner,
      progress: progress,
      place: place
    )
  }
}

/// Passes the value of a producer to a consumer, just before the consumer executes.
///
/// The closures capture neither operation, so that a long chain of operations can be released without recursion.
struct HandOver: LedgerEntry, Sendable {
  let producer: AsyncOperation
  /// Whether the consumer needs the value to execute.
  let isRequired: Bool
  /// Returns the reason why there is no value, or nil if there is a value.
  let obstacle: @Sendable (_ producer: AsyncOperation) -> (any Error)?
  /// Writes the value, if there is one, to the consumer.
  let transfer: @Sendable (_ producer: AsyncOperation, _ consumer: AsyncOperation) -> Void

  var identity: ObjectIdentifier { ObjectIdentifier(producer) }

  func carryOut(to consumer: AsyncOperation) { transfer(producer, consumer) }

  /// The missing value, if the consumer needs it.
  var missingInput: MissingInput? {
    guard isRequired, let cause = obstacle(producer) else { return nil }
    return MissingInput(producer: producer, cause: cause)
  }
}

/// A pause of an executing operation, such as a back-off. It releases the slot in the group, unless ``keepsSlot`` is
/// set.
///
/// The mutable properties are guarded by the lock of the operation.
final class OperationPause: @unchecked Sendable {
  /// The work that follows the pause, as soon as the operation has a slot again.
  let resume: @Sendable () -> Void
  /// The place where the operation continues, unless its group starts it again.
  let place: ExecutionPlace
  /// Whether the operation keeps its slot, because it has a permit, such as keys. Another operation in the slot might
  /// wait for the same keys.
  let keepsSlot: Bool
  let timer = ClockTimer()
  /// Whether the time is over. The operation then waits for a slot.
  var isOver = false

  /// The name of the work that follows the pause, for a stall report.
  let next: String
  /// Returns the remaining time of the pause.
  let remaining: @Sendable () -> Duration

  init(
    keepingSlot keepsSlot: Bool,
    at place: ExecutionPlace,
    before next: String,
    remaining: @escaping @Sendable () -> Duration,
    resume: @escaping @Sendable () -> Void
  ) {
    self.next = next
    self.remaining = remaining
    self.keepsSlot = keepsSlot
    self.place = place
    self.resume = resume
  }
}
