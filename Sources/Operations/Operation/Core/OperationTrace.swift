import Foundation

/// Receives the lifecycle events of an operation. A tracer subclasses it, so that lower layers do not depend on it.
class OperationTrace: @unchecked Sendable {
  enum Event {
    case enqueued
    case waitsForTurn
    /// The dependencies have finished, and it is the operation's turn under its keys. Not sent if the operation was ready from the start.
    case ready
    case started
    /// `execute()` has returned. The work may continue, or have ended.
    case executionReturned
    case cancelled
    /// The work has ended, or will not run. The errors are complete, and the end has not been announced yet.
    case ended(Operation)
    /// The operation runs these members inside it from now on. May be sent twice for the same members.
    case gained([Operation])
  }

  /// The trace that was attached earlier. Set once, before another thread can access this trace.
  var next: OperationTrace?

  /// Sends an event to this and all earlier traces, without a lock held, on the thread where the event occurred.
  final func send(_ event: Event) {
    handle(event)
    next?.send(event)
  }

  func handle(_ event: Event) {}
}
