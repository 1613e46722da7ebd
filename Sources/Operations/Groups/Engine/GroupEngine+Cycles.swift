import Foundation

/// Detecting and cancelling members that wait for each other.
extension GroupEngine {
  /// The number of steps that a search takes when a member is added to a running group.
  private static let searchSteps = 64
  /// How long a group in which no member runs waits before it searches all members.
  private static let searchDelay = DispatchTimeInterval.milliseconds(20)
  /// A queue that gets a thread at once, even if other work blocks all existing threads.
  private static let searchQueue = DispatchQueue(label: "Operations.cycles")

  private func searchForCycle() {
    guard let group = state.withLock({ $0.group }), !isInOrder else { return }
    var search = WaitSearch { [self] in isConcern(of: group, $0) }
    switch search.search(from: group) {
    case .none: return
    case .unfinished: state.withLock { $0.schedule.isCycleSuspected = true }
    case .cycles(let doomed): cancel(doomed, enclosing: search.enclosing, in: group)
    }
  }

  /// Whether every member depends only on earlier members, as in most groups. Then there is no cycle, and one check
  /// per member is enough.
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

  /// Cancels the members among `doomed`, and the members of nested groups unless their group is cancelled itself.
  private func cancel(
    _ doomed: [(operation: Operation, cycle: DependencyCycle)],
    enclosing: [ObjectIdentifier: Operation],
    in group: GroupOperation
  ) {
    let ids = Set(doomed.map { ObjectIdentifier($0.operation) })
    var cancelled: Set<ObjectIdentifier> = []
    var own: [(operation: AsyncOperation, error: OperationError)] = []
    var plain: [Operation] = []
    for (operation, cycle) in doomed where operation !== group {
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
  /// A new member closes a cycle only if an operation waits for it. A long search is postponed until no member runs.
  func searchForCycle(through operation: Operation) {
    guard let own = operation as? AsyncOperation, own.core.withLock({ !$0.ledger.dependents.isEmpty }) else { return }
    searchForCycle(from: own)
  }

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

  func searchForSuspectedCycle(evenIfMoving: Bool = false) {
    let isDue = state.withLock { state in
      // Members that are cancelled no longer wait.
      guard state.schedule.isCycleSuspected, !state.schedule.isDraining else { return false }
      guard evenIfMoving || state.schedule.isStuck else { return false }
      state.schedule.isCycleSuspected = false
      return true
    }
    if isDue { searchForCycle() }
  }

  /// Schedules a search for when no member has run for a while.
  ///
  /// One search covers everything that is added meanwhile, because members may gain dependencies one by one, and each
  /// search checks all of them.
  func searchForSuspectedCycleSoon() {
    let isDue = state.withLock { state in
      guard state.schedule.isCycleSuspected, state.schedule.isStuck, !state.isSearchDue else { return false }
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
