import Foundation

/// What a member counts in the progress of its group, if it is not just one unit that is done or is not.
struct MemberPart {
  let operation: AsyncOperation
  let index: Int
  /// Nil leaves it as it is.
  var weight: Int?
  let isReporting: Bool

  init(_ operation: AsyncOperation, index: Int, isReporting: Bool) {
    (self.operation, self.index, self.isReporting) = (operation, index, isReporting)
  }

  /// Nil for a simple unit.
  init?(_ operation: Operation, index: Int, hasExtras: Bool) {
    let isGroup = operation is GroupOperation
    guard isGroup || hasExtras, let own = operation as? AsyncOperation else { return nil }
    let (weight, reports) = own.core.withLock { ($0.extras?.progressWeight, $0.extras?.progress != nil) }
    self.init(own, index: index, isReporting: isGroup || reports)
    self.weight = weight
  }
}
