import Foundation

/// Detecting and cancelling members that wait for each other.
extension GroupEngine {
  /// The largest number of names in an error message.
  private static let namedOperations = 16
  /// The maximum number of waits in a search through one member of a running group.
  private static let searchSteps = 64
  /// The delay before a group in which no member runs searches all of its members.
  private static let searchDelay = DispatchTimeInterval.milliseconds(20)
  /// A queue that gets a thread at once, even if other work blocks all existing threads.
  private static let searchQueue = DispatchQueue(label: "Operations.cycles")

  /// The number of times that the waits are read. They are read again if an apparent cycle has changed meanwhile.
  private static let attempts = 3

  /// Searches the whole group for cycles, and cancels the members that cannot run because of one.
  private func searchForCycle() {
    guard let group = state.withLock({ $0.group }), !isInOrder else { return }
    for _ in 0..<GroupEngine.attempts {
      let snapshot = WaitSnapshot(of: [group])
      let order = snapshot.order
      if order.stuck.isEmpty { return }
      let enclosing = snapshot.enclosing
      let blocked = snapshot.blocked(in: order) { isConcern(of: group, $0, enclosing) }
      if blocked.isEmpty { return }
      if blocked.allSatisfy(\.node.isCurrent) { return cancel(blocked, enclosing, in: group) }
    }
    state.withLock { $0.schedule.isCycleSuspected = true }
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

  /// Whether operations that wait for each other include members of this group, or are in no group. Other groups detect
  /// their own cycles.
  private func isConcern(
    of group: GroupOperation,
    _ operations: [Operation],
    _ enclosing: [ObjectIdentifier: Operation]
  ) -> Bool {
    var isOthers = false
    for operation in operations {
      let outer = enclosing[ObjectIdentifier(operation)]
      if operation === group || outer === group { return true }
      let supervisor = (operation as? AsyncOperation)?.core.withLock { $0.supervisor }
      if supervisor === self { return true }
      if outer != nil || supervisor != nil || PlainMemberGate.holds(operation) { isOthers = true }
    }
    return !isOthers
  }

  /// Cancels the operations in `blocked` that are inside this group. Cancelling a nested group covers its members.
  private func cancel(
    _ blocked: [WaitSnapshot.Blocked],
    _ enclosing: [ObjectIdentifier: Operation],
    in group: GroupOperation
  ) {
    let ids = Set(blocked.compactMap { $0.node.operation.map { ObjectIdentifier($0) } })
    var cancelled: Set<ObjectIdentifier> = []
    var own: [(operation: AsyncOperation, error: OperationError)] = []
    var plain: [Operation] = []
    for (node, cycle) in blocked {
      guard let operation = node.operation, operation !== group else { continue }
      var outer = enclosing[ObjectIdentifier(operation)]
      while let next = outer, next !== group, !ids.contains(ObjectIdentifier(next)) {
        outer = enclosing[ObjectIdentifier(next)]
      }
      guard outer === group, cancelled.insert(ObjectIdentifier(operation)).inserted else { continue }
      let message = "Dependency cycle in \(group.quotedName): \(GroupEngine.names(of: cycle))."
      let error = OperationError(.dependencyCycle, message)
      if let operation = operation as? AsyncOperation {
        own.append((operation, error))
      } else {
        let outer = (enclosing[ObjectIdentifier(operation)] as? AsyncOperation)?.groupInside
        (outer as? GroupOperation)?.note(error, ofPlain: operation)
        plain.append(operation)
      }
    }
    AsyncOperation.cancel(own, plain: plain)
  }

  /// Returns the names of a cycle in order, with the first one repeated at the end.
  private static func names(of cycle: [Operation]) -> String {
    let names = cycle.prefix(namedOperations).map(\.displayName)
    let others = cycle.count - names.count
    return (names + (others > 0 ? ["… \(others) more …"] : []) + names.prefix(1)).joined(separator: " → ")
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
    if let snapshot = WaitSnapshot(of: operation, limit: GroupEngine.searchSteps) {
      if !snapshot.order.stuck.isEmpty { searchForCycle() }
    } else {
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
