import Foundation

/// How members come.
extension GroupEngine {
  /// How many operations are taken in at once.
  private static let batch = 64

  enum Admission {
    /// They will run, or be finished unexecuted if the group is winding down.
    case admitted
    /// The group has ended because it was wound down: they have been cancelled and have finished.
    case cancelled
    /// The group has ended by itself.
    case refused
  }

  /// Which operations are added, and what happens to those that cannot be.
  struct Newcomers {
    let operations: [Operation]
    /// Those that the caller named: the program traps if one of them is elsewhere. Nil if it named all of them.
    var named: Set<ObjectIdentifier>?
    /// Whether one may be in this group already.
    var mayRepeat = false

    func isNamed(_ operation: Operation) -> Bool { named?.contains(ObjectIdentifier(operation)) ?? true }
  }

  /// Takes operations in.
  func add(_ newcomers: Newcomers, to outer: GroupOperation) -> Admission {
    let (phase, isOver, isWindingDown) = state.withLock { state in
      // Abandoned and released, it has nobody to see a newcomer to its end.
      let isOver = state.schedule.phase == .ended || (state.isAbandoned && state.group == nil)
      if !isOver { state.schedule.admit(0) }
      return (state.schedule.phase, isOver, state.schedule.isWindingDown)
    }
    let operations = newcomers.operations
    if isOver {
      // One that was cancelled may have ended by itself before its members could be told of it.
      let isWindingDown = isWindingDown || outer.isCancelled
      if isWindingDown { for operation in operations { finishUnexecuted(operation, of: newcomers) } }
      return isWindingDown ? .cancelled : .refused
    }
    let trace = outer.trace
    trace?.operationGains(operations)
    // In batches that stay in the processor's cache: each operation is touched several times here.
    for start in stride(from: 0, to: operations.count, by: GroupEngine.batch) {
      let end = min(start + GroupEngine.batch, operations.count)
      add(operations[start..<end], of: newcomers, to: outer)
    }
    // Whoever has begun to follow the group meanwhile may have come before its members.
    if let newest = outer.trace, newest !== trace { newest.operationGains(operations) }
    if phase == .running, !isWindingDown {
      for operation in operations { searchForCycle(through: operation) }
      searchForSuspectedCycleSoon()
    }
    admitted()
    return .admitted
  }

  private func add(_ operations: ArraySlice<Operation>, of newcomers: Newcomers, to outer: GroupOperation) {
    let (firstIndex, isWindingDown) = state.withLock { state in
      state.schedule.admit(operations.count)
      state.progress.add(operations.count)
      return (state.members.append(operations), state.schedule.isWindingDown)
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
      // Another thread may have taken it a moment ago: the operation that brought it along depends on it there.
      case .refused where !newcomers.isNamed(operation): skipped.insert(index)
      case .refused(let obstacle): misuse(operation.cannotBeAdded(because: obstacle))
      }
    }
    let groups = parts.lazy.compactMap { $0.operation as? GroupOperation }
    for group in groups { group.refuse(enclosing: outer) }
    let hasGroups = !groups.isEmpty
    // The flag of the group is set before its members are cancelled, and whoever has seen it expects as much here.
    if isWindingDown || outer.isCancelled {
      for (operation, index) in zip(operations, firstIndex...) where !skipped.contains(index) { operation.cancel() }
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
    admitted(except: skipped.count)
  }

  func admitted(except skipped: Int = 0) {
    let (addsRunner, isDone) = state.withLock { $0.schedule.admitted(except: skipped) }
    if addsRunner { addRunner() }
    if isDone { end() }
  }

  private func claim(_ operation: Operation, index: Int) -> OperationCore.ClaimAction {
    if let own = operation as? AsyncOperation {
      return own.core.withLock { $0.claim(for: self, index: index) }
    }
    return claim(plain: operation, index: index)
  }

  /// Ends an operation that was added to a group after its cancellation had ended it.
  private func finishUnexecuted(_ operation: Operation, of newcomers: Newcomers) {
    if let own = operation as? AsyncOperation {
      if newcomers.isNamed(operation) { own.claim(for: nil) } else if !own.claimIfFree() { return }
    } else if !newcomers.isNamed(operation), !operation.isFreePlainOperation {
      return
    }
    operation.cancel()
    operation.finishUnexecuted()
  }
}

extension Operation {
  /// Ends an operation that has been cancelled and is in no queue.
  func finishUnexecuted() {
    if let own = self as? AsyncOperation {
      _ = own.startAsMember(by: nil)
    } else {
      if isReady { start() } else { OperationQueue().addOperation(self) }
      if isFinished { forgetDependencies() }
    }
  }

  /// A plain Foundation operation has finished before what it waits for, because it was cancelled: on Linux Foundation
  /// would use a pointer to it when that finishes, whether it is still there or not.
  ///
  /// All of them, for one that calls itself finished may not have told Foundation yet; and not before the end, or
  /// Foundation would take a cancelled operation for one that waits for less than nothing, and is not ready.
  func forgetDependencies() {
    for operation in dependencies { removeDependency(operation) }
  }
}
