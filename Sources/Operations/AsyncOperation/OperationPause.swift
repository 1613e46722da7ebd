/// An executing operation has nothing to do for a while, and has given the slot of its group back.
///
/// What changes is guarded by the lock of the operation.
final class OperationPause: @unchecked Sendable {
  /// What it goes on with, as soon as it has a slot again.
  let resume: @Sendable () -> Void
  var timer: ClockTimer?
  /// The time is over: it waits for a slot.
  var isOver = false

  init(resume: @escaping @Sendable () -> Void) { self.resume = resume }
}
