import Foundation

/// The turn of an operation under its keys, for mutual exclusion, a higher layer. Called without a lock held.
protocol OperationTurn: AnyObject, Sendable {
  /// Enters the wait queues, and returns whether it is the operation's turn. A later turn is reported to
  /// ``AsyncOperation/turnHasCome(holdingKeys:)``. A repeated request has no effect.
  func request() -> Bool

  /// Takes all keys, and returns whether this call has taken them. Otherwise the operation waits in its wait queues. If
  /// `waits`, it counts as started, and holds its keys when its turn has come.
  func take(waits: Bool) -> Bool

  func leave(_ departure: TurnDeparture)

  var goal: String { get }

  /// The operations that hold the keys for which this one waits.
  var holders: [AsyncOperation] { get }
}

/// The reason why an operation leaves its keys or the wait queues.
enum TurnDeparture {
  /// It has a new dependency. Has no effect after its start.
  case newDependency
  /// It pauses, or could not start although it had taken its keys.
  case pause
  /// It was cancelled. It keeps the keys that it holds.
  case cancellation
  /// It has finished, or has been released without finishing.
  case end
}
