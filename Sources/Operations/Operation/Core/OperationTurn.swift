import Foundation

/// The turn of an operation under its keys, for mutual exclusion, a higher layer. Called without a lock held.
protocol OperationTurn: AnyObject, Sendable {
  /// Enters the wait queues, or returns to them. A later turn is reported to
  /// ``AsyncOperation/turnHasCome(holdingKeys:request:)`` with the number of the latest request.
  func request(_ number: Int) -> TurnAnswer

  /// Takes all keys of an operation that has been started, and returns whether this call has taken them. Otherwise it holds
  /// its keys when its turn has come.
  func take() -> Bool

  /// Takes all keys of a member that has been called because of its latest request, with a slot that its group has taken
  /// for it. Returns nil if it is not called any more. Otherwise the slot is used or returned.
  func takeWithSlot(_ request: Int) -> TurnAnswer?

  func leave(_ departure: TurnDeparture)

  /// Moves the operation in the wait queues. A priority that a task has lent is passed on to the next holders.
  func priorityDidChange(to priority: Operation.QueuePriority, lent: TaskPriority?)

  var goal: String { get }

  /// The operations that hold the keys for which this one waits.
  var holders: [AsyncOperation] { get }
}

enum TurnAnswer {
  case waiting
  /// The operation may be started, and takes its keys then.
  case called
  /// The operation holds its keys and, as a member, a slot.
  case holding
}

/// The reason why an operation leaves its keys or the wait queues. A member gives back its slot with its keys.
enum TurnDeparture {
  /// It has a new dependency, and keeps its place. Has no effect if its turn has been requested again.
  case newDependency(request: Int)
  /// It pauses, and keeps its place.
  case pause
  /// It was cancelled. It keeps the keys that it holds.
  case cancellation
  /// It has finished, or has been released without finishing.
  case end
}
