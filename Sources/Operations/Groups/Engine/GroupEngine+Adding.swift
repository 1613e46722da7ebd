import Foundation

/// Adding members.
extension GroupEngine {
  /// The maximum number of operations that are added at once.
  private static let batch = 64

  /// The result of adding operations.
  enum Admission {
    /// The operations will run, or finish without executing if the members have been cancelled.
    case added
    /// The group has finished, and its members were cancelled. The operations have finished without executing.
    case cancelled
    /// The group has finished without being cancelled. The operations were not added.
    case refused
  }

  /// The operations to add, and how to treat operations that cannot be added.
  struct Newcomers {
    let operations: [Operation]
    /// The operations that the caller named. Adding them traps if they are elsewhere, and other operations are skipped.
    /// Nil if the caller named all operations.
    var named: Set<ObjectIdentifier>?
    /// Whether an operation may be in this group already.
    var mayRepeat = false

    func isNamed(_ operation: Operation) -> Bool { named?.contains(ObjectIdentifier(operation)) ?? true }
  }

  /// Adds operations to the group.
  func add(_ newcomers: Newcomers, to outer: GroupOperation) -> Admission {
    let (isOver, isDraining) = state.withLock { state in
      // A group that has been abandoned and released cannot finish a new member.
      let isOver = state.schedule.phase == .ended || (state.isAbandoned && state.group == nil)
      if !isOver { state.schedule.beginAdding(0) }
      return (isOver, state.schedule.isDraining)
    }
    let operations = newcomers.operations
    if isOver {
      // The group may have been cancelled, and have finished before it cancelled its members.
      let isDraining = isDraining || outer.isCancelled
      if isDraining { for operation in operations { finishUnexecuted(operation, of: newcomers) } }
      return isDraining ? .cancelled : .refused
    }
    let trace = outer.trace
    trace?.send(.gained(operations))
    // Adds batches that stay in the processor's cache, because each operation is accessed several times here.
    for start in stride(from: 0, to: operations.count, by: GroupEngine.batch) {
      let end = min(start + GroupEngine.batch, operations.count)
      add(operations[start..<end], of: newcomers, to: outer)
    }
    // A trace that was attached since the previous event may have missed these members.
    if let newest = outer.trace, newest !== trace { newest.send(.gained(operations)) }
    // The phase is read only now, because a group that started meanwhile may have searched without these members.
    if state.withLock({ $0.schedule.phase == .running && !$0.schedule.isDraining }) {
      for operation in operations { searchForCycle(through: operation) }
      searchForSuspectedCycleSoon()
    }
    membersWereAdded()
    return .added
  }

  private func add(_ operations: ArraySlice<Operation>, of newcomers: Newcomers, to outer: GroupOperation) {
    let (firstIndex, isDraining) = state.withLock { state in
      state.schedule.beginAdding(operations.count)
      state.progress.add(operations.count)
      return (state.members.append(operations), state.schedule.isDraining)
    }
    var ready: [ReadyMember] = []
    var parts: [MemberPart] = []
    var skipped: Set<Int> = []
    var (needsPermits, haveDependencies) = (false, false)
    ready.reserveCapacity(operations.count)
    for (operation, index) in zip(operations, firstIndex...) {
      switch claim(operation, index: index) {
      case .claimed(let waits, let needsPermit, let hasExtras):
        if let own = operation as? AsyncOperation, hasExtras || own is GroupOperation {
          parts.append(MemberPart(own, index: index))
        }
        if needsPermit { needsPermits = true }
        if waits { haveDependencies = true }
        if !waits, !needsPermit { ready.append(ReadyMember(operation)) }
      case .repeated where newcomers.mayRepeat: skipped.insert(index)
      case .repeated: misuse(operation.cannotBeAdded(because: "is in this group"))
      // Another thread may have just added the operation elsewhere. Its dependents wait for it there.
      case .refused where !newcomers.isNamed(operation): skipped.insert(index)
      case .refused(let obstacle): misuse(operation.cannotBeAdded(because: obstacle))
      }
    }
    let groups = parts.lazy.compactMap { $0.operation as? GroupOperation }
    for group in groups { group.refuse(enclosing: outer) }
    let hasGroups = !groups.isEmpty
    // The group's `isCancelled` is set before its members are cancelled. A caller that has read true expects new
    // members to be cancelled.
    if isDraining || outer.isCancelled {
      for (operation, index) in zip(operations, firstIndex...) where !skipped.contains(index) {
        operation.cancelAsMember()
      }
    }
    let (roomWaiters, offersReady) = state.withLock { state in
      let roomWaiters = skipped.map { index in
        _ = state.members.remove(at: index)
        return state.roomWaiters.take(downTo: state.members.count)
      }
      for part in parts { state.weigh(part) }
      if hasGroups { state.hasHadGroups = true }
      state.progress.add(-skipped.count)
      if needsPermits { state.hasHadPermits = true }
      // The members of a group that has not started request their permits when it starts.
      let offersReady = needsPermits && state.schedule.phase != .gathering
      if !offersReady { state.schedule.append(ready) }
      if haveDependencies { state.schedule.isCycleSuspected = true }
      return (roomWaiters, offersReady)
    }
    for waiters in roomWaiters { waiters.resume() }
    if offersReady { offer(operations, ready: ready.map(\.operation)) }
    updateProgress()
    membersWereAdded(except: skipped.count)
  }

  /// Completes an addition of members, `skipped` of which were not added.
  func membersWereAdded(except skipped: Int = 0) {
    let (addsRunner, isDone) = state.withLock { $0.schedule.membersWereAdded(except: skipped) }
    if addsRunner { addRunner() }
    if isDone { end() }
  }

  private func claim(_ operation: Operation, index: Int) -> OperationCore.ClaimAction {
    if let own = operation as? AsyncOperation {
      return own.core.withLock { $0.claim(for: self, index: index) }
    }
    return claim(plain: operation, index: index)
  }

  /// Finishes an operation that was added after a cancelled group had finished.
  private func finishUnexecuted(_ operation: Operation, of newcomers: Newcomers) {
    if let own = operation as? AsyncOperation {
      if newcomers.isNamed(operation) { own.claim(for: nil) } else if !own.claimIfFree() { return }
    } else if !newcomers.isNamed(operation), !operation.isFreePlainOperation {
      return
    }
    operation.cancelAsMember()
    operation.startCancelled()
  }
}

extension Operation {
  /// Starts a cancelled operation that is in no queue, so that it finishes without executing.
  func startCancelled() {
    if let own = self as? AsyncOperation {
      _ = own.startAsMember(by: nil)
    } else {
      if isReady { start() } else { OperationQueue().addOperation(self) }
      if isFinished { forgetDependencies() }
    }
  }

  /// Removes the dependencies of a plain Foundation operation that has finished.
  ///
  /// A cancelled operation may finish before its dependencies. On Linux, Foundation then uses a pointer to the
  /// operation when a dependency finishes, even if the operation has been released.
  ///
  /// Finished dependencies are removed as well, because they may not have notified Foundation yet. Call this method
  /// only after the operation has finished. Otherwise Foundation would count fewer than zero dependencies for a
  /// cancelled operation and not consider it ready.
  func forgetDependencies() {
    removeDependencies(dependencies)
  }
}
