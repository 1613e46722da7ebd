import Foundation

/// A member that has finished, with the index that its list gave it.
struct FinishedMember {
  let operation: Operation
  let index: Int
  /// It has a slot to give back.
  var holdsSlot = true
  /// The error of a plain Foundation operation, which cannot keep it itself.
  var error: (any Error)?
  /// No member starts until the group has seen the failure of this one.
  var postponesStarts = false
}
