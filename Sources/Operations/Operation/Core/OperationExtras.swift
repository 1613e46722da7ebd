import Foundation

/// The state that only some operations need, apart from the core to save memory in the others. Guarded by its lock.
final class OperationExtras {
  // MARK: Before execution

  var conditions: [OperationCondition] = []
  /// The task-local values of the conditions. Nil when their evaluation has begun.
  var context: TaskContext?
  /// The condition that is being evaluated, or was evaluated last. Kept after the end.
  var condition: String?
  /// Empty when the operation executes.
  var handOvers = LedgerList<HandOver>()

  /// Kept after the end.
  var flow: ExclusivityKey?
  /// The group that cancels what depends on the operation, because the operation has failed. Kept after the end.
  var failedGroup: GroupEngine?

  // MARK: Time

  var timeout: Duration?
  var waitLimit: Duration?
  var clock: (any Clock<Duration>)?
  /// The timer of the wait limit and, from the execution on, of the timeout.
  var deadline: ClockTimer?
  var finishesWhenCancelled = false
  /// Nil unless the operation is paused, or ended in a pause.
  var pause: OperationPause?

  // MARK: Inner operations

  /// Kept from the start on, when the operation may leave the thread that started it.
  var place: ExecutionPlace?
  /// Runs inside this operation, which executes. Cancelled with it, and at its end. Cycle detection treats it as a member.
  var inner: AsyncOperation?

  // MARK: Following

  /// Kept after the end, because the traces of dependents report their wait for this operation.
  var trace: [OperationFollower] = []
  var progress: OperationProgress?
  var progressWeight = 1

  var hasInputs: Bool { !conditions.isEmpty || !handOvers.isEmpty || spentTimeout != nil }

  /// A timeout that is not positive, with which the operation does not execute.
  var spentTimeout: Duration? { timeout.flatMap { $0 <= .zero ? $0 : nil } }

  /// What stays after the end, if anything. The rest is released after the lock.
  var remainder: OperationExtras? {
    let isUntimed = timeout == nil && waitLimit == nil && clock == nil && !finishesWhenCancelled
    let isUnfollowed = trace.isEmpty && progress == nil && progressWeight == 1
    if isUntimed, isUnfollowed, flow == nil, failedGroup == nil, condition == nil { return nil }
    let remainder = OperationExtras()
    remainder.flow = flow
    remainder.failedGroup = failedGroup
    remainder.condition = condition
    remainder.timeout = timeout
    remainder.waitLimit = waitLimit
    remainder.clock = clock
    remainder.trace = trace
    remainder.progress = progress
    remainder.progressWeight = progressWeight
    remainder.finishesWhenCancelled = finishesWhenCancelled
    return remainder
  }
}

/// Passes the value of a producer to a consumer, just before the consumer executes. The closures capture neither, so
/// that a long chain of operations can be released without recursion.
struct HandOver: Identifiable, Sendable {
  let producer: AsyncOperation
  /// The reason why there is no value, unless the consumer executes without one.
  let obstacle: @Sendable (_ producer: AsyncOperation) -> (any Error)?
  let transfer: @Sendable (_ producer: AsyncOperation, _ consumer: AsyncOperation) -> Void

  var id: ObjectIdentifier { ObjectIdentifier(producer) }
}

/// A pause of an executing operation, such as a back-off, during which it uses no slot of a group and holds no keys.
final class OperationPause: Sendable {
  let timer = ClockTimer()
  let next: String
  let remaining: @Sendable () -> Duration
  let resume: Waiter

  init(before next: String, remaining: @escaping @Sendable () -> Duration, resume: @escaping Waiter) {
    self.next = next
    self.remaining = remaining
    self.resume = resume
  }
}
