import Foundation

/// How members that wait for each other in a circle are found.
extension GroupEngine {
  /// How far the search goes when a member is added to a running group.
  private static let searchSteps = 64

  private func searchForCycle() {
    guard let group = state.withLock({ $0.group }), !isInOrder else { return }
    if case .found(let cycle) = DependencyCycle.search(from: group) { fail(because: cycle) }
  }

  /// Whether every member waits for earlier members at most, as most groups are made: then there is no circle, and one
  /// look at each is enough to know.
  private var isInOrder: Bool {
    state.withLock { $0.members.operations }.allSatisfy { member in
      guard let own = member as? AsyncOperation else { return member.dependencies.isEmpty }
      if member is GroupOperation { return false }
      let (index, dependencies) = own.core.withLock { ($0.memberIndex, $0.ledger.dependencies.entries) }
      return dependencies.allSatisfy { dependency in
        guard case .own(let operation) = dependency else { return false }
        return operation.core.withLock { $0.supervisor === self && $0.memberIndex < index }
      }
    }
  }

  private func fail(because cycle: DependencyCycle) {
    let group = state.withLock { state in
      defer { state.hasFoundCycle = true }
      return state.hasFoundCycle ? nil : state.group
    }
    group?.fail(because: cycle)
  }

  /// A newcomer closes a circle only if somebody waits for it. A search that gets long is left for when nothing moves.
  func searchForCycle(through operation: Operation) {
    guard let own = operation as? AsyncOperation, own.core.withLock({ !$0.ledger.dependents.isEmpty }) else { return }
    searchForCycle(from: own, isThorough: false)
  }

  func searchForCycle(from operation: AsyncOperation, isThorough: Bool) {
    switch DependencyCycle.search(from: operation, steps: isThorough ? .max : GroupEngine.searchSteps) {
    case .found(let cycle): fail(because: cycle)
    case .none: return
    case .unfinished: state.withLock { $0.schedule.isCycleSuspected = true }
    }
  }

  func searchForSuspectedCycle(evenIfMoving: Bool = false) {
    let isDue = state.withLock { state in
      // Members that are cancelled wait for nothing any more.
      guard state.schedule.isCycleSuspected, !state.schedule.isWindingDown else { return false }
      guard evenIfMoving || state.schedule.isStuck else { return false }
      state.schedule.isCycleSuspected = false
      return true
    }
    if isDue { searchForCycle() }
  }
}
