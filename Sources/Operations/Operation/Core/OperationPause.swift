/// A pause of an executing operation, such as a back-off. It releases the slot in the group, unless ``keepsSlot`` is
/// set.
///
/// The mutable properties are guarded by the lock of the operation.
final class OperationPause: @unchecked Sendable {
  /// The work that follows the pause, as soon as the operation has a slot again.
  let resume: @Sendable () -> Void
  /// The place where the operation continues, unless its group starts it again.
  let place: ExecutionPlace
  /// Whether the operation keeps its slot, because it needs a permit, such as keys. An operation in the slot might
  /// wait for those keys.
  let keepsSlot: Bool
  var timer: ClockTimer?
  /// Whether the time is over. The operation then waits for a slot.
  var isOver = false

  /// The name of what starts after the pause, for a stall report.
  let next: String
  /// Returns the rest of the pause.
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
