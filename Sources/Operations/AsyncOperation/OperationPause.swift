/// An executing operation has nothing to do for a while, and has given the slot of its group back.
struct OperationPause {
  /// What it goes on with, as soon as it has a slot again.
  let resume: @Sendable () -> Void
  var timer: ClockTimer?
  /// The time is over: it waits for a slot.
  var isOver = false
}
