import Foundation

/// Receives the lifecycle events of an operation. It represents a tracer to the layers below the tracer.
///
/// All calls are made without a lock held, on the thread where the event occurred. Each method also notifies ``next``.
class OperationTrace: @unchecked Sendable {
  /// The trace that was attached earlier. Set once, before another thread can access this trace.
  var next: OperationTrace?

  /// The operation has been claimed for a queue.
  func operationIsEnqueued() { next?.operationIsEnqueued() }

  /// The dependencies have finished, and the operation waits for its permit.
  func operationWaitsForPermit() { next?.operationWaitsForPermit() }

  /// The dependencies have finished and the permit was granted. Not called if the operation was ready from the start.
  func operationIsReady() { next?.operationIsReady() }

  /// The operation starts to execute on this thread.
  func operationBegins() { next?.operationBegins() }

  /// `execute()` has returned. The work may continue, or have ended.
  func executionReturned() { next?.executionReturned() }

  func operationWasCancelled() { next?.operationWasCancelled() }

  /// The work has ended, or will not run. The errors are complete, and the end has not been announced yet.
  func operationEnds(_ operation: Operation) { next?.operationEnds(operation) }

  /// The operation runs `members` inside it from now on. May be called twice for the same members.
  func operationGains(_ members: [Operation]) { next?.operationGains(members) }

  /// Returns the trace of a plain Foundation operation inside this one, which sends no events itself. Its end is
  /// reported late.
  func trace(of member: Operation) -> OperationTrace? { next?.trace(of: member) }
}
