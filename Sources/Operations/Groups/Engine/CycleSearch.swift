import Foundation

enum CycleSearch {
  case none
  /// There may be a cycle that has not been searched for.
  case suspected
  /// As ``suspected``, and a search was too long. The next one is made when no member runs.
  case postponed
  /// As ``postponed``, and a delayed search is pending.
  case scheduled
}

extension GroupSchedule {
  mutating func suspectCycle() { if cycleSearch == .none { cycleSearch = .suspected } }

  /// - Returns: Whether the caller must search. Cancelled members do not wait, so a draining group has no cycle.
  mutating func beginCycleSearch(evenIfRunning: Bool = false) -> Bool {
    guard cycleSearch != .none, !isDraining, evenIfRunning || hasNothingToRun else { return false }
    cycleSearch = .none
    return true
  }

  var needsScheduledSearch: Bool { (cycleSearch == .suspected || cycleSearch == .postponed) && hasNothingToRun }

  /// - Returns: Whether the caller must call ``beginScheduledSearch()`` after a delay.
  mutating func scheduleCycleSearch() -> Bool {
    guard needsScheduledSearch else { return false }
    cycleSearch = .scheduled
    return true
  }

  mutating func beginScheduledSearch() -> Bool {
    if cycleSearch == .scheduled { cycleSearch = .suspected }
    return beginCycleSearch()
  }
}

extension GroupEngine {
  private static let searchSteps = 64
  /// The delay before a group in which no member runs searches all of its members.
  private static let searchDelay = DispatchTimeInterval.milliseconds(20)
  /// A queue that gets a thread at once, even if other work blocks all existing threads.
  private static let searchQueue = DispatchQueue(label: "Operations.cycles")

  /// Searches the whole group for cycles, and cancels the members that cannot run because of one.
  func searchForCycle() {
    guard let group = state.withLock({ $0.schedule.life.group }), !isInOrder else { return }
    // Reads the waits again, up to three times in all, if an apparent cycle has changed meanwhile.
    for _ in 0..<3 {
      let snapshot = WaitSnapshot(of: [group])
      let order = snapshot.order
      if order.stuck.isEmpty { return }
      let enclosing = snapshot.enclosing
      // Other groups detect cycles that include no member of this group, and an operation in a group.
      let blocked = snapshot.blocked(in: order) { operations in
        let places = operations.map { operation -> [Operation] in
          let outer = (operation as? AsyncOperation)?.core.withLock { $0.outer }
          return [enclosing[ObjectIdentifier(operation)], outer].compactMap(\.self)
        }
        return (operations + places.joined()).contains { $0 === group } || places.allSatisfy(\.isEmpty)
      }
      if blocked.isEmpty { return }
      if blocked.allSatisfy(\.node.isCurrent) { return cancel(blocked, in: snapshot, of: group) }
    }
    state.withLock { $0.schedule.suspectCycle() }
  }

  /// Whether every member depends only on earlier members, as in most groups, which rules out a cycle.
  var isInOrder: Bool {
    state.withLock { $0.members.elements }.allSatisfy { member in
      if member is GroupOperation { return false }
      let (index, dependencies) = member.core.withLock { ($0.memberIndex, $0.ledger.dependencies.entries) }
      return dependencies.allSatisfy { dependency in
        guard case .own(let operation) = dependency else { return false }
        return operation.core.withLock { $0.engine === self && $0.memberIndex < index }
      }
    }
  }

  /// Cancels the operations in `blocked` that are inside this group. Cancelling a nested group covers its members.
  private func cancel(_ blocked: [WaitSnapshot.Blocked], in snapshot: WaitSnapshot, of group: GroupOperation) {
    let enclosing = snapshot.enclosing
    let ids = Set(blocked.compactMap { $0.node.operation.map { ObjectIdentifier($0) } })
    var errors: [ObjectIdentifier: OperationError] = [:]
    var members: [AsyncOperation] = []
    for (node, cycle) in blocked {
      guard let operation = node.operation as? AsyncOperation, operation !== group else { continue }
      var outer = enclosing[ObjectIdentifier(operation)]
      while let next = outer, next !== group, !ids.contains(ObjectIdentifier(next)) {
        outer = enclosing[ObjectIdentifier(next)]
      }
      guard outer === group, errors[ObjectIdentifier(operation)] == nil else { continue }
      let message = "Dependency cycle in \(group.quotedName): \(GroupEngine.names(of: cycle))."
      errors[ObjectIdentifier(operation)] = OperationError(.dependencyCycle, message)
      members.append(operation)
    }
    AsyncOperation.cancelAll(members, because: { errors[ObjectIdentifier($0)].map { FailureReport([$0]) } })
  }

  private static func names(of cycle: [Operation]) -> String {
    let names = cycle.prefix(16).map(\.displayName)
    let others = cycle.count - names.count
    return (names + (others > 0 ? ["… \(others) more …"] : []) + names.prefix(1)).joined(separator: " → ")
  }

  /// Searches for a cycle through a member. A long search is postponed until no member runs.
  func searchForCycle(from operation: AsyncOperation) {
    let isCovered = state.withLock { [.postponed, .scheduled].contains($0.schedule.cycleSearch) }
    if isCovered { return searchForSuspectedCycleSoon() }
    if let snapshot = WaitSnapshot(of: operation, limit: GroupEngine.searchSteps) {
      if !snapshot.order.stuck.isEmpty { searchForCycle() }
    } else {
      state.withLock { $0.schedule.cycleSearch = .postponed }
      searchForSuspectedCycleSoon()
    }
  }

  func searchForSuspectedCycle(evenIfRunning: Bool = false) {
    if state.withLock({ $0.schedule.beginCycleSearch(evenIfRunning: evenIfRunning) }) { searchForCycle() }
  }

  /// Members may gain dependencies one by one. One delayed search covers all that are added meanwhile.
  func searchForSuspectedCycleSoon() {
    guard state.withLock({ $0.schedule.scheduleCycleSearch() }) else { return }
    GroupEngine.searchQueue.asyncAfter(deadline: .now() + GroupEngine.searchDelay) { [weak self] in
      guard let self else { return }
      if state.withLock({ $0.schedule.beginScheduledSearch() }) { searchForCycle() }
    }
  }
}
