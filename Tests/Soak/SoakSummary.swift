/// How much has been gone through, and what was done to it.
package struct SoakSummary: Sendable, CustomStringConvertible {
  package private(set) var rounds = 0
  package private(set) var operations = 0
  package private(set) var events = 0
  private var faults: [String: Int] = [:]

  package init() {}

  init(_ plan: SoakPlan, events: Int) {
    (rounds, operations, self.events) = (1, plan.items.count, events)
    for item in plan.items {
      if item.isFailing { add("failing") }
      if item.condition == .unmet || item.condition == .unmetLater { add("unmet conditions") }
      if item.waitsForGhost || item.leadsToGhost { add("never enqueued") }
      switch item.way {
      case .never: add("never finishing")
      case .twice: add("finishing twice")
      case .late: add("finishing late")
      case .cancellingGroup: add("cancelling their group")
      default: break
      }
      switch item.coming {
      case .broughtBy: add("newcomers")
      case .whenGroupIsCancelled: add("newcomers to cancelled groups")
      case .awaited(.some): add("cancelled tasks")
      case .awaited, .atFirst: break
      }
    }
    for action in plan.actions {
      switch action.deed {
      case .cancel(_, let threads): add("cancellations", threads)
      case .finish: add("finished from outside")
      default: break
      }
    }
    for caller in plan.callers where caller.cancelledAt != nil { add("cancelled callers") }
    for home in plan.homes where home.shutdown != nil { add("shutdowns") }
  }

  private mutating func add(_ fault: String, _ count: Int = 1) { faults[fault, default: 0] += count }

  package static func += (left: inout Self, right: Self) {
    left.rounds += right.rounds
    left.operations += right.operations
    left.events += right.events
    left.faults.merge(right.faults, uniquingKeysWith: +)
  }

  package var description: String {
    let faults = faults.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    return "\(rounds) rounds, \(operations) operations, \(events) events; \(faults)"
  }
}
