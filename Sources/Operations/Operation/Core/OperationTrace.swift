import Foundation

/// Who follows an operation through its life from close by: what a tracer is to the layers below it.
///
/// The calls come without a lock held, on the thread where it happens. Each passes them on to whoever follows the
/// operation, too.
class OperationTrace: @unchecked Sendable {
  /// Who has begun to follow the operation before. Set once, before anybody else knows this one.
  var next: OperationTrace?

  /// It has been taken for a queue.
  func operationIsEnqueued() { next?.operationIsEnqueued() }

  /// Nothing is waited for any more, the permit included. Not said if that was so from the start.
  func operationIsReady() { next?.operationIsReady() }

  /// Execution begins, on this thread.
  func operationBegins() { next?.operationBegins() }

  /// `execute()` has returned; the work may go on, or have ended.
  func executionReturned() { next?.executionReturned() }

  func operationWasCancelled() { next?.operationWasCancelled() }

  /// The work has ended, or there is to be none. Errors are complete, and nobody has been told yet.
  func operationEnds(_ operation: Operation) { next?.operationEnds(operation) }

  /// The operation has others run inside it, from now on. May be said twice.
  func operationGains(_ members: [Operation]) { next?.operationGains(members) }

  /// What follows a plain Foundation operation inside this one, which cannot tell by itself. Its end is told late.
  func trace(of member: Operation) -> OperationTrace? { next?.trace(of: member) }
}
