import Foundation

/// What an operation that asks for keys runs inside of.
struct ExclusivitySurroundings {
  /// What the operations around it have asked for, from the innermost outwards.
  private(set) var requests: [ExclusivityRequest] = []
  /// Where those have slots that others, who have asked for keys, wait for.
  private(set) var slots: [ObjectIdentifier] = []

  init(of group: GroupOperation?, in domain: ExclusivityDomain) {
    var operations: [AsyncOperation] = []
    var next: AsyncOperation? = group
    while let operation = next {
      operations.append(operation)
      let (admission, supervisor) = operation.core.withLock { ($0.extras?.admission, $0.supervisor) }
      if let request = admission as? ExclusivityRequest, request.domain === domain { requests.append(request) }
      next = supervisor?.supervisedGroup
    }
    guard let last = operations.last else { return }
    for (place, request) in domain.waitingForSlots {
      // All but the innermost have a slot in the next one. Its members wait for theirs as this operation does.
      if request.waitsForSlot(ofAnyOf: operations.dropFirst(), queued: last) { slots.append(place) }
    }
  }
}
