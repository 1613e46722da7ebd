/// Who has to let an operation in when everything it waits for has finished, and hears of its end: what mutual
/// exclusion is to the layers below it.
///
/// The calls come without a lock held, on the thread where it happened.
class OperationAdmission: @unchecked Sendable {
  /// The operation has nothing else to wait for. It is let in by ``AsyncOperation/admit()``, now or later.
  func operationAsks() {}

  /// The operation waits for something else again, and would ask later.
  ///
  /// - Returns: Whether it has given up its place. It has not if it has been let in.
  func operationPostpones() -> Bool { false }

  /// The operation, which has been let in, is about to begin.
  ///
  /// - Returns: Whether it still may. Otherwise it waits, on no thread, for ``whenAdmittedAgain(_:)``.
  func operationBegins() -> Bool { true }

  /// Calls `resumption`, now or later, unless the operation ends before.
  func whenAdmittedAgain(_ resumption: @escaping @Sendable () -> Void) {}

  func operationWasCancelled() {}

  /// The operation has finished, whatever way it did.
  func operationDidFinish() {}

  /// What the operation waits for here, for a sentence about it.
  var goal: String { "its admission" }
}
