import Foundation

/// An addition of a batch of members, from the assignment of their indices to the commit. The group cannot finish in
/// between. A batch stays in the processor's cache, because each operation is accessed several times.
struct Addition {
  /// The operations that are skipped if they cannot be added. Any other such operation traps.
  enum Skipping {
    case none
    /// Operations that are in this group already.
    case repetitions
    /// As ``repetitions``, and operations that are elsewhere, unless the caller named them.
    case unnamed(except: Set<ObjectIdentifier>)

    func isNamed(_ operation: Operation) -> Bool {
      if case .unnamed(let named) = self { named.contains(ObjectIdentifier(operation)) } else { true }
    }
  }

  private static let size = 64

  let all: [Operation]
  let range: Range<Int>
  let firstIndex: Int
  var ready = ReadyList()
  /// The operations that had been cancelled before.
  var cancelled: [Operation] = []
  var parts: [MemberPart] = []
  var skipped: Set<Int> = []
  var needTurns = false
  var hasDependencies = false

  var operations: Zip2Sequence<ArraySlice<Operation>, PartialRangeFrom<Int>> { zip(all[range], firstIndex...) }

  static func range(from start: Int, of all: [Operation]) -> Range<Int> { start..<min(start + size, all.count) }
}

extension GroupEngine.State {
  /// Nil if the group takes no more members.
  mutating func begin(_ all: [Operation], from start: Int = 0) -> Addition? {
    if schedule.life.isOver { return nil }
    let range = Addition.range(from: start, of: all)
    schedule.beginAdding(range.count)
    progress.add(range.count)
    return Addition(all: all, range: range, firstIndex: members.append(all[range]))
  }

  /// - Parameter awaited: The operations of this and the earlier batches that have dependents.
  /// - Returns: Whether the caller must call ``GroupEngine/offer(_:ready:)``, whether it must cancel the members, and the
  ///   addition of the next batch, if any.
  mutating func commit(
    _ addition: Addition,
    awaited: [AsyncOperation]
  ) -> (action: GroupEngine.Action, offers: Bool, isDraining: Bool, next: Addition?) {
    let end = addition.range.upperBound
    let next = end < addition.all.count ? begin(addition.all, from: end) : nil
    let count = members.count
    for index in addition.skipped { _ = members.remove(at: index) }
    for part in addition.parts { weigh(part) }
    progress.add(-addition.skipped.count)
    let offers = addition.needTurns && schedule.needTurn()
    for member in addition.cancelled { schedule.cancelled.append(member) }
    if !offers { schedule.ready.append(addition.ready) }
    if addition.hasDependencies { schedule.suspectCycle() }
    schedule.membersWereAdded(except: addition.skipped.count)
    var action = nextAction()
    action.roomWaiters = roomWaiters.take(downTo: members.count, from: count)
    action.updatesProgress = progress.isFollowed
    // A group that started before the last commit may have searched without these members.
    if next == nil, case .proceed = action.outcome, schedule.life.isRunning, !schedule.isDraining,
      !awaited.isEmpty || schedule.needsScheduledSearch
    {
      action.outcome = .searchForCycleThrough(awaited)
    }
    return (action, offers, schedule.isDraining, next)
  }
}

extension GroupEngine {
  /// Adds the operations or, if the group has finished, finishes them without executing them. `hasRoom` means that the
  /// caller has reserved room for the operation.
  func add(
    _ operations: [Operation],
    skipping: Addition.Skipping,
    to group: GroupOperation,
    hasRoom: Bool = false
  ) {
    var addition = state.withLock { state in
      if hasRoom { state.roomWaiters.endReservation() }
      return state.begin(operations)
    }
    if addition == nil {
      for operation in operations { finishUnexecuted(operation, skipping, after: group) }
    }
    var trace: OperationTrace?
    var awaited: [AsyncOperation] = []
    while var current = addition {
      // Read after the members have their places, because a trace that was attached before did not see them.
      let (newest, isCancelled) = group.core.withLock { ($0.trace, $0.lifecycle.isCancelled) }
      if let newest, newest !== trace {
        newest.send(.gained(operations))
        trace = newest
      }
      claim(&current, &awaited, skipping, in: group)
      // The group's `isCancelled` is set before its members are cancelled. A caller that has read true expects new
      // members to be cancelled. The thread that cancels them skips those that were not claimed.
      if isCancelled { cancelMembers(of: current) }
      let (action, offers, isDraining, next) = state.withLock { $0.commit(current, awaited: awaited) }
      if isDraining { cancelMembers(of: current) }
      if offers { offer(current.all[current.range], ready: current.ready.takeAll()) }
      carryOut(action)
      addition = next
    }
  }

  private func claim(
    _ addition: inout Addition,
    _ awaited: inout [AsyncOperation],
    _ skipping: Addition.Skipping,
    in group: GroupOperation
  ) {
    for (operation, index) in addition.operations {
      switch claim(operation, index: index) {
      case .claimed(let waits, let needsTurn, let isAwaited, let hasWeight, let isCancelled):
        if waits { addition.hasDependencies = true }
        if needsTurn { addition.needTurns = true }
        if isCancelled {
          addition.cancelled.append(operation)
        } else if !waits, !needsTurn {
          addition.ready.append(operation, operation.queuePriority)
        }
        guard let own = operation as? AsyncOperation else { continue }
        if isAwaited { awaited.append(own) }
        guard hasWeight || own is GroupOperation else { continue }
        (own as? GroupOperation)?.refuse(enclosing: group)
        if let part = MemberPart(own, index: index) { addition.parts.append(part) }
      case .repeated:
        if case .none = skipping { misuse(operation.cannotBeAdded(because: "is in this group")) }
        addition.skipped.insert(index)
      case .refused(let obstacle):
        // Another thread may have just added the operation elsewhere. Its dependents wait for it there.
        if skipping.isNamed(operation) { misuse(operation.cannotBeAdded(because: obstacle)) }
        addition.skipped.insert(index)
      }
    }
  }

  private func cancelMembers(of addition: Addition) {
    for (operation, index) in addition.operations where !addition.skipped.contains(index) { operation.cancelAsMember() }
  }

  private func claim(_ operation: Operation, index: Int) -> OperationCore.ClaimAction {
    if let own = operation as? AsyncOperation {
      return own.core.withLock { $0.claim(for: self, index: index) }
    }
    return claim(plain: operation, index: index)
  }

  private func finishUnexecuted(_ operation: Operation, _ skipping: Addition.Skipping, after group: GroupOperation) {
    if let own = operation as? AsyncOperation {
      if skipping.isNamed(operation) { own.claim(for: nil) } else if !own.claimIfFree() { return }
      own.cancel(group.isCancelled ? nil : FailureReport([OperationError.shutDown(own, after: group)]))
    } else {
      if !skipping.isNamed(operation), !operation.isFreePlainOperation { return }
      operation.cancelAsMember()
    }
    operation.startCancelled()
  }
}

extension OperationError {
  fileprivate static func shutDown(_ operation: AsyncOperation, after group: GroupOperation) -> Self {
    let reason = "\(operation.quotedName) did not run because \(group.quotedName) had finished."
    return Self(.shutDown, reason + " Add it to a new group.")
  }
}

extension GroupOperation {
  /// Traps if adding the group would nest it inside itself. Only a group with groups as members can enclose another
  /// one.
  fileprivate func refuse(enclosing outer: GroupOperation) {
    if self !== outer, !engine.state.withLock({ $0.progress.hasReportingMembers }) { return }
    var enclosing: AsyncOperation? = outer
    while let group = enclosing {
      if group === self {
        misuse("\(quotedName) cannot be a member of itself: it would wait for its own end. Add another group.")
      }
      enclosing = group.core.withLock { $0.supervisor }?.supervisedGroup
    }
  }
}
