/// An executing operation has nothing to do for a while, and has given the slot of its group back, if it may.
///
/// What changes is guarded by the lock of the operation.
final class OperationPause: @unchecked Sendable {
  /// What it goes on with, as soon as it has a slot again.
  let resume: @Sendable () -> Void
  /// Where it continues, unless its group starts it again.
  let place: ExecutionPlace
  /// It has keys, too: whoever took the slot might want them.
  let keepsSlot: Bool
  var timer: ClockTimer?
  /// The time is over: it waits for a slot.
  var isOver = false

  /// What begins after the pause.
  let next: String
  /// How long the pause still lasts.
  let remaining: @Sendable () -> Duration

  init(
    keepingSlot keepsSlot: Bool,
    at place: ExecutionPlace,
    before next: String,
    remaining: @escaping @Sendable () -> Duration,
    resume: @escaping @Sendable () -> Void
  ) {
    self.next = next
    self.remaining = remaining
    self.keepsSlot = keepsSlot
    self.place = place
    self.resume = resume
  }
}
