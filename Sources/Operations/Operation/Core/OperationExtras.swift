import Foundation

/// What only some operations have. Apart from the core, so that the others do not pay for it; guarded by the same lock.
final class OperationExtras {
  // MARK: Before execution

  /// What the operation needs to execute when everything it waits for has finished.
  var permit: StartPermit?
  var conditions: [OperationCondition] = []
  /// The one that is being evaluated.
  var condition: String?
  /// In the order of the `pass` calls.
  var handOvers: [HandOver] = []

  // MARK: Time

  var timeout: Duration?
  var clock: (any Clock<Duration>)?
  /// For the timeout.
  var deadline: ClockTimer?
  /// Set while the operation has given its slot back.
  var pause: OperationPause?

  // MARK: What runs inside

  /// Where the operation executes, if it may leave the thread that started it.
  var place: ExecutionPlace?
  /// Cancelled with the operation, and at its end.
  var task: Task<Void, Never>?
  /// Cancelled with the operation. In the operation's name for whoever looks for circles.
  var inner: AsyncOperation?

  // MARK: Following

  /// Told, in any order, when the operation has settled, unless they do not want to know any more.
  var followers: [ObjectIdentifier: @Sendable () -> Void] = [:]
  /// Kept beyond the end, so that others who are followed can say that they waited for this one.
  var trace: OperationTrace?
  var progress: OperationProgress?
  var progressWeight = 1

  var isToBePrepared: Bool {
    permit != nil || !conditions.isEmpty || !handOvers.isEmpty || spentTimeout != nil
  }

  /// The timeout, if its time is over before it begins.
  var spentTimeout: Duration? { timeout.flatMap { $0 <= .zero ? $0 : nil } }

  /// Changes a property, and returns what was there: the last reference to something is not let go of under the lock.
  func exchange<Value>(_ property: ReferenceWritableKeyPath<OperationExtras, Value>, _ new: Value) -> Value {
    defer { self[keyPath: property] = new }
    return self[keyPath: property]
  }

  func takeHandOvers(from producer: Operation) -> [HandOver] {
    defer { handOvers.removeAll { $0.producer === producer } }
    return handOvers.filter { $0.producer === producer }
  }

  /// What an operation lets go of when it has ended, to be released when the lock is.
  struct Remains {
    var permit: StartPermit?
    var conditions: [OperationCondition]
    var handOvers: [HandOver]
    var deadline: ClockTimer?
    var task: Task<Void, Never>?
    var pause: OperationPause?
    var inner: AsyncOperation?
    var progress: OperationProgress?
    var followers: [ObjectIdentifier: @Sendable () -> Void]
    var place: ExecutionPlace?
  }

  func takeRemains() -> Remains {
    defer {
      (conditions, handOvers, followers) = ([], [], [:])
      (permit, deadline, task, pause, inner, place) = (nil, nil, nil, nil, nil, nil)
    }
    return Remains(
      permit: permit,
      conditions: conditions,
      handOvers: handOvers,
      deadline: deadline,
      task: task,
      pause: pause,
      inner: inner,
      progress: progress,
      followers: followers,
      place: place
    )
  }
}

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
