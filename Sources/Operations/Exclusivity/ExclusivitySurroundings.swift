import Foundation

/// What an operation that asks for keys runs inside of.
struct ExclusivitySurroundings {
  /// What the operations around it have asked for, from the innermost outwards.
  private(set) var requests: [ExclusivityRequest] = []
  /// Where those operations have slots: in groups, and the outermost in a queue.
  private(set) var slots: [ObjectIdentifier] = []

  init(of group: GroupOperation?, in domain: ExclusivityDomain) {
    var next: AsyncOperation? = group
    while let operation = next {
      let (admission, queue, supervisor) = operation.core.withLock {
        ($0.extras?.admission, $0.extras?.queue, $0.supervisor)
      }
      if let request = admission as? ExclusivityRequest, request.domain === domain { requests.append(request) }
      next = supervisor?.supervisedGroup
      if let place = next.map({ ObjectIdentifier($0) }) ?? queue { slots.append(place) }
    }
  }
}
