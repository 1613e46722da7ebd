import Foundation

/// Who follows an operation through its life from close by: what a tracer is to the layers below it.
///
/// The calls come without a lock held, on the thread where it happens.
class OperationTrace: @unchecked Sendable {
  /// It has been taken for a queue.
  func operationIsEnqueued() {}

  /// Nothing is waited for any more, the admission included. Not said if that was so from the start.
  func operationIsReady() {}

  /// Execution begins, on this thread.
  func operationBegins() {}

  /// `execute()` has returned; the work may go on, or have ended.
  func executionReturned() {}

  func operationWasCancelled() {}

  /// The work has ended, or there is to be none. Errors are complete, and nobody has been told yet.
  func operationEnds(_ operation: Operation) {}

  /// The operation has others run inside it, from now on.
  func operationGains(_ members: [Operation]) {}

  /// What follows a plain Foundation operation inside this one, which cannot tell by itself. Its end is told late.
  func trace(of member: Operation) -> OperationTrace? { nil }
}
