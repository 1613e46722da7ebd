import Foundation

/// A dependency with which a group keeps a plain member from starting before it has a slot.
///
/// Meanwhile the member is in a queue of its own, so that Foundation detects when it is cancelled.
final class PlainMemberGate: Operation, @unchecked Sendable {
  override init() {
    super.init()
    name = "slot"
  }

  /// Whether a group has placed the operation in a queue.
  static func holds(_ operation: Operation) -> Bool { operation.dependencies.contains { $0 is PlainMemberGate } }

  /// Whether a group keeps the operation from starting.
  static func isHolding(_ operation: Operation) -> Bool {
    operation.dependencies.contains { $0 is PlainMemberGate && !$0.isFinished }
  }
}

extension Operation {
  /// Whether a plain Foundation operation may still be outside of any queue or group, as far as the toolkit can know.
  var isFreePlainOperation: Bool {
    !isExecuting && !isFinished && !(self is PlainMemberGate) && !PlainMemberGate.holds(self)
  }
}
