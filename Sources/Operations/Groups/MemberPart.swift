import Foundation

/// What a member counts in the progress of its group, if it is not just one unit that is done or is not.
struct MemberPart {
  let operation: AsyncOperation
  let index: Int
  let weight: Int
  let isReporting: Bool

  init(_ operation: AsyncOperation, index: Int) {
    let (weight, reports) = operation.core.withLock { ($0.extras?.progressWeight ?? 1, $0.extras?.progress != nil) }
    self.operation = operation
    self.index = index
    self.weight = weight
    isReporting = reports || operation is GroupOperation
  }
}
