import Foundation

/// Adding members.
extension GroupEngine {
  /// The number of operations that are added at once.
  private static let batch = 64

  enum Admission {
    /// The operations will run, or finish without executing if the members have been cancelled.
    case added
    /// The group has finished because its members were cancelled. The operations have been cancelled and have
    /// finished.
    case cancelled
    /// The group has finished by itself.
    case refused
  }

  /// The operations to add, and how to treat operations that cannot be added.
  struct Newcomers {
    let operations: [Operation]
    /// The operations that the caller named, which trap if they are elsewhere. Nil if the caller named all of them.
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
      // A cancelled group may have finished by itself before its members could be cancelled.
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
    // A trace that was attached meanwhile may have been attached before the members were added.
    if let newest = outer.trace, newest !== trace { newest.send(.gained(operations)) }
    // Read only now, because the group may have started meanwhile, and its own search may have missed these members.
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
    var needPermits = false
    ready.reserveCapacity(operations.count)
    for (operation, index) in zip(operations, firstIndex...) {
      switch claim(operation, index: index) {
      case .claimed(let isReady, let hasExtras):
        if let own = operation as? AsyncOperation, hasExtras || own is GroupOperation {
          parts.append(MemberPart(own, index: index))
        }
        if hasExtras, !needPermits, let own = operation as? AsyncOperation {
          needPermits = own.core.withLock { $0.extras?.permit != nil }
        }
        if isReady { ready.append(ReadyMember(operation)) }
      case .repeated where newcomers.mayRepeat: skipped.insert(index)
      case .repeated: misuse(operation.cannotBeAdded(because: "is in this group"))
      // Another thread may have added it elsewhere a moment ago. The operation that depends on it waits for it there.
      case .refused where !newcomers.isNamed(operation): skipped.insert(index)
      case .refused(let obstacle): misuse(operation.cannotBeAdded(because: obstacle))
      }
    }
    let groups = parts.lazy.compactMap { $0.operation as? GroupOperation }
    for group in groups { group.refuse(enclosing: outer) }
    let hasGroups = !groups.isEmpty
    // The flag of the group is set before its members are cancelled. A thread that has read the flag expects new
    // members to be cancelled.
    if isDraining || outer.isCancelled {
      for (operation, index) in zip(operations, firstIndex...) where !skipped.contains(index) {
        operation.cancelAsMember()
      }
    }
    let roomWaiters = state.withLock { state in
      let roomWaiters = skipped.map { index in
        _ = state.members.remove(at: index)
        return state.roomWaiters.take(downTo: state.members.count)
      }
      for part in parts { state.weigh(part) }
      if hasGroups { state.hasHadGroups = true }
      state.progress.add(-skipped.count)
      if needPermits { state.schedule.handsOutInOrder = true }
      state.schedule.append(ready)
      if ready.count + skipped.count < operations.count { state.schedule.isCycleSuspected = true }
      return roomWaiters
    }
    for waiters in roomWaiters { waiters.resume() }
    updateProgress()
    membersWereAdded(except: skipped.count)
  }

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

  /// Finishes an operation that was added to a group after the group had finished because of its cancellation.
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
  /// All dependencies are removed, because a dependency whose `isFinished` is true may not have notified Foundation
  /// yet. They must not be removed before the end, because Foundation would count fewer than zero dependencies for a
  /// cancelled operation and not consider it ready.
  func forgetDependencies() {
    for operation in dependencies { removeDependency(operation) }
  }
}
