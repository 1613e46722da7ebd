import Foundation

/// One call that adds members, from the assignment of their indices to the commit. Meanwhile the group cannot finish.
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

  /// The priority of a ready member and the flow are read without the lock of the group.
  typealias Member = (
    operation: AsyncOperation, traits: MemberTraits, priority: Operation.QueuePriority, flow: ExclusivityKey?
  )

  let count: Int
  let policy: GroupOperation.ErrorPolicy
  /// Whether no member starts before all new ones have their places, or are cancelled.
  let postponesStarts: Bool
  /// Released with the addition.
  let forgottenFlows: [ExclusivityKey: Int]
  var members: [Member] = []
  var skipped: [Int] = []
  var parts: [MemberPart] = []
  var observers: [OperationObserver] = []
  var traits: MemberTraits = []

  var operations: [AsyncOperation] { members.map(\.operation) }
}

extension GroupEngine.State {
  /// Nil if the group takes no more members.
  mutating func beginAddition(of count: Int, in group: GroupOperation, isCancelled: Bool) -> Addition? {
    if schedule.life.isOver { return nil }
    schedule.wake(group)
    schedule.beginAddition(of: count)
    progress.add(count)
    let postponesStarts =
      count > 1 || isCancelled || errorPolicy == .cancelDependents || !memberObservers.isEmpty
    if postponesStarts { schedule.startObstacles += 1 }
    let forgotten = schedule.ready.flows.forgetIdleFlows()
    return Addition(count: count, policy: errorPolicy, postponesStarts: postponesStarts, forgottenFlows: forgotten)
  }

  /// - Returns: Whether the caller must call ``GroupEngine/letArrive(_:ready:)``, and whether it must cancel the members.
  mutating func endAddition(_ addition: Addition) -> (action: GroupEngine.Action, letsArrive: Bool, isDraining: Bool) {
    let letsArrive = addition.traits.contains(.needsKeys) && schedule.mayArrive()
    let action = changeMembers { state in
      for index in addition.skipped { _ = state.members.remove(index) }
      for part in addition.parts { state.weigh(part) }
      let skipped = addition.count - addition.members.count
      state.progress.add(-skipped)
      if state.schedule.life.isGathering {
        state.plainMembers += addition.members.lazy.compactMap { $0.operation as? PlainMember }
      }
      for (member, traits, priority, flow) in addition.members {
        if traits.contains(.isCancelled) {
          state.schedule.cancelled.append(member)
        } else if traits.isReady, !letsArrive {
          state.schedule.becameReady(member, priority, of: flow)
        }
      }
      state.schedule.endAddition(skipped: skipped)
      if addition.postponesStarts { state.schedule.startObstacles -= 1 }
    }
    return (action, letsArrive, schedule.isDraining)
  }
}

extension GroupEngine {
  /// Adds the operations or, in a finished group, finishes them unexecuted. `hasRoom`: the caller has reserved room.
  func add(_ operations: [Operation], skipping: Addition.Skipping, to group: GroupOperation, hasRoom: Bool = false) {
    if operations.isEmpty { return }
    // The group's `isCancelled` is set before its members are cancelled. A caller that has read true expects new
    // members to be cancelled. The thread that cancels them skips those that have no place.
    let isCancelled = group.isCancelled
    guard var addition = state.withLock({ $0.beginAddition(of: operations.count, in: group, isCancelled: isCancelled) })
    else {
      if hasRoom { state.withLock { $0.roomWaiters.endReservation() } }
      for member in makeMembers(operations[...], skipping) { finishUnexecuted(member, skipping, after: group) }
      return
    }
    // A batch stays in the processor's cache, because each operation is accessed several times.
    for start in stride(from: 0, to: operations.count, by: GroupEngine.batch) {
      let members = makeMembers(operations[start...].prefix(GroupEngine.batch), skipping)
      let firstIndex = state.withLock { state in
        if hasRoom { state.roomWaiters.endReservation() }
        addition.observers = state.memberObservers
        let first = state.members.nextNumber
        for member in members { state.members.append(member) }
        return first
      }
      // Read after the members have their places, because a trace that was attached before did not see them.
      let (trace, lent) = group.core.withLock { ($0.trace, $0.lent) }
      for follower in trace { follower.noteMembers(members) }
      if lent > 0 { for member in members { member.escalatePriority(to: TaskPriority(rawValue: lent)) } }
      takePlaces(of: members, from: firstIndex, for: &addition, skipping, in: group)
    }
    if group.isCancelled { cancelMembers(of: addition) }
    if addition.policy == .cancelDependents { for member in addition.operations { cancelIfDependencyFailed(member) } }
    let (action, letsArrive, isDraining) = state.withLock { $0.endAddition(addition) }
    for member in addition.members where member.traits.isReady {
      moveMember(member.operation, nil, from: member.priority)
    }
    if isDraining { cancelMembers(of: addition) }
    if letsArrive {
      let ready = addition.members.filter(\.traits.isReady)
      letArrive(addition.operations, ready: Set(ready.map { ObjectIdentifier($0.operation) }))
    }
    carryOut(action)
    if addition.traits.contains(.waits) { watch(isWaiting: true) }
    if !addition.traits.contains(.hasWaitLimit) { return }
    for member in addition.members where member.traits.contains(.hasWaitLimit) { member.operation.startWaitLimit() }
  }

  private static let batch = 64

  private func makeMembers(_ operations: ArraySlice<Operation>, _ skipping: Addition.Skipping) -> [AsyncOperation] {
    let members = operations.compactMap { operation in
      let member = operation as? AsyncOperation ?? PlainMember.make(for: operation)
      if member == nil, skipping.isNamed(operation) { misuse(operation.cannotBeAdded(because: "has been started")) }
      return member
    }
    // Plain members may depend on each other.
    for case let plain as PlainMember in members { plain.adoptChanges() }
    return members
  }

  private func takePlaces(
    of members: [AsyncOperation],
    from firstIndex: Int,
    for addition: inout Addition,
    _ skipping: Addition.Skipping,
    in group: GroupOperation
  ) {
    for (member, index) in zip(members, firstIndex...) {
      switch member.core.withLock({ $0.takePlace(in: self, index: index) }) {
      case .taken(let traits):
        let priority = traits.isReady ? member.queuePriority : .normal
        addition.members.append((member, traits, priority, traits.contains(.hasFlow) ? member.flow : nil))
        addition.traits.formUnion(traits)
        if !addition.observers.isEmpty {
          member.addObservers(addition.observers)
          member.engineOfMembers?.addObservers(addition.observers, toPresent: true)
        }
        guard traits.contains(.hasWeight) || member is GroupOperation else { continue }
        if let inner = member as? GroupOperation { refuse(inner, inside: group) }
        if let part = MemberPart(member, index: index) { addition.parts.append(part) }
      case .repeated:
        switch skipping {
        case .repetitions: break
        case .none, .unnamed:
          if skipping.isNamed(member.represented) { misuse(member.cannotBeAdded(because: "is in this group")) }
        }
        addition.skipped.append(index)
      case .refused(let obstacle):
        // Another thread may have just added the operation elsewhere. Its dependents wait for it there.
        if skipping.isNamed(member.represented) { misuse(member.cannotBeAdded(because: obstacle)) }
        addition.skipped.append(index)
      }
    }
  }

  private func cancelMembers(of addition: Addition) { for member in addition.operations { member.cancel() } }

  private func finishUnexecuted(_ member: AsyncOperation, _ skipping: Addition.Skipping, after group: GroupOperation) {
    if skipping.isNamed(member.represented) { member.takePlace(in: nil) } else if !member.takePlaceIfFree() { return }
    let reason = "\(member.quotedName) did not run because \(group.quotedName) had finished. Add it to a new group."
    member.cancel(group.isCancelled ? nil : FailureReport([OperationError(.shutDown, reason)]))
    member.startCancelled()
  }

  /// Traps if the group would be nested inside itself. Only a group with groups as members can enclose another one.
  private func refuse(_ group: GroupOperation, inside outer: GroupOperation) {
    if group !== outer, !group.engine.state.withLock({ $0.progress.hasChildren }) { return }
    let enclosing = sequence(first: outer as AsyncOperation) { inner in inner.core.withLock { $0.outer } }
    if enclosing.contains(where: { $0 === group }) {
      misuse("\(group.quotedName) cannot be a member of itself: it would wait for its own end. Add another group.")
    }
  }
}
