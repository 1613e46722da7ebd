import Foundation

/// Detecting and cancelling members that wait for each other.
extension GroupEngine {
  /// The maximum number of steps in a search through one member of a running group.
  private static let searchSteps = 64
  /// The delay before a group in which no member runs searches all of its members.
  private static let searchDelay = DispatchTimeInterval.milliseconds(20)
  /// A queue that gets a thread at once, even if other work blocks all existing threads.
  private static let searchQueue = DispatchQueue(label: "Operations.cycles")

  /// Searches the whole group for cycles, and cancels the members that cannot run because of one.
  private func searchForCycle() {
    guard let group = state.withLock({ $0.group }), !isInOrder else { return }
    var search = WaitSearch { [self] in isConcern(of: group, $0) }
    switch search.search(from: group) {
    case .none: return
    case .unfinished: state.withLock { $0.schedule.isCycleSuspected = true }
    case .cycles(let affected): cancel(affected, enclosing: search.enclosing, in: group)
    }
  }

  /// Whether every member depends only on earlier members, which rules out a cycle. This is true for most groups, and
  /// takes one check per member.
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

  /// Whether a cycle leads through members of this group, or through no group's members. Other groups detect their
  /// own cycles.
  private func isConcern(of group: GroupOperation, _ waiters: [WaitSearch.Waiter]) -> Bool {
    var isOthers = false
    for (operation, enclosing) in waiters {
      if operation === group || enclosing === group { return true }
      let supervisor = (operation as? AsyncOperation)?.core.withLock { $0.supervisor }
      if supervisor === self { return true }
      if enclosing != nil || supervisor != nil || PlainMemberGate.holds(operation) { isOthers = true }
    }
    return !isOthers
  }

  /// Cancels the operations in `affected` that are inside this group. Cancelling a nested group covers its members.
  private func cancel(
    _ affected: [(operation: Operation, cycle: DependencyCycle)],
    enclosing: [ObjectIdentifier: Operation],
    in group: GroupOperation
  ) {
    let ids = Set(affected.map { ObjectIdentifier($0.operation) })
    var cancelled: Set<ObjectIdentifier> = []
    var own: [(operation: AsyncOperation, error: OperationError)] = []
    var plain: [Operation] = []
    for (operation, cycle) in affected where operation !== group {
      var outer = enclosing[ObjectIdentifier(operation)]
      while let next = outer, next !== group, !ids.contains(ObjectIdentifier(next)) {
        outer = enclosing[ObjectIdentifier(next)]
      }
      guard outer === group, cancelled.insert(ObjectIdentifier(operation)).inserted else { continue }
      let message = "Dependency cycle in \(group.quotedName): \(cycle.description)."
      let error = OperationError(.dependencyCycle, message)
      if let operation = operation as? AsyncOperation {
        own.append((operation, error))
      } else {
        (enclosing[ObjectIdentifier(operation)] as? GroupOperation)?.note(error, ofPlain: operation)
        plain.append(operation)
      }
    }
    AsyncOperation.cancel(own, plain: plain)
  }

  /// Searches for a cycle through a new member.
  ///
  /// A new member closes a cycle only if an operation waits for it.
  func searchForCycle(through operation: Operation) {
    guard let own = operation as? AsyncOperation, own.core.withLock({ !$0.ledger.dependents.isEmpty }) else { return }
    searchForCycle(from: own)
  }

  /// Searches for a cycle through a member. A long search is postponed until no member runs.
  func searchForCycle(from operation: AsyncOperation) {
    var search = WaitSearch(steps: GroupEngine.searchSteps)
    switch search.search(from: operation) {
    case .none: return
    case .cycles: searchForCycle()
    case .unfinished:
      state.withLock { $0.schedule.isCycleSuspected = true }
      searchForSuspectedCycleSoon()
    }
  }

  /// Searches for a suspected cycle if no member runs or can run, or if `evenIfRunning` is true.
  func searchForSuspectedCycle(evenIfRunning: Bool = false) {
    let isDue = state.withLock { state in
      // Cancelled members do not wait.
      guard state.schedule.isCycleSuspected, !state.schedule.isDraining else { return false }
      guard evenIfRunning || state.schedule.hasNothingToRun else { return false }
      state.schedule.isCycleSuspected = false
      return true
    }
    if isDue { searchForCycle() }
  }

  /// Schedules a search for a suspected cycle if no member runs or can run.
  ///
  /// Members may gain dependencies one by one. One delayed search covers all that are added meanwhile.
  func searchForSuspectedCycleSoon() {
    let isDue = state.withLock { state in
      guard state.schedule.isCycleSuspected, state.schedule.hasNothingToRun, !state.isSearchDue else { return false }
      state.isSearchDue = true
      return true
    }
    guard isDue else { return }
    GroupEngine.searchQueue.asyncAfter(deadline: .now() + GroupEngine.searchDelay) { [weak self] in
      guard let self else { return }
      state.withLock { $0.isSearchDue = false }
      searchForSuspectedCycle()
    }
  }
}
