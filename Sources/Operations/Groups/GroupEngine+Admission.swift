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

  /// Which operations are passed over. Those that are not free otherwise end the program.
  enum Skipping {
    case none
    /// Those that are in this group already.
    case repeated
    /// Those that are anywhere already.
    case taken
  }

  /// Takes operations in.
  func add(_ operations: [Operation], to outer: GroupOperation, skipping: Skipping) -> Admission {
    let (phase, isOver, isWindingDown) = state.withLock { state in
      // Abandoned and released, it has nobody to see a newcomer to its end.
      let isOver = state.schedule.phase == .ended || (state.isAbandoned && state.group == nil)
      if !isOver { state.schedule.admit(0) }
      return (state.schedule.phase, isOver, state.schedule.isWindingDown)
    }
    if isOver {
      // One that was cancelled may have ended by itself before its members could be told of it.
      let isWindingDown = isWindingDown || outer.isCancelled
      if isWindingDown { for operation in operations { finishUnexecuted(operation) } }
      return isWindingDown ? .cancelled : .refused
    }
    let trace = outer.trace
    trace?.operationGains(operations)
    // In batches that stay in the processor's cache: each operation is touched several times here.
    for start in stride(from: 0, to: operations.count, by: GroupEngine.batch) {
      let end = min(start + GroupEngine.batch, operations.count)
      add(operations[start..<end], to: outer, skipping: skipping)
    }
    // Whoever has begun to follow the group meanwhile may have come before its members.
    if let newest = outer.trace, newest !== trace { newest.operationGains(operations) }
    if phase == .running, !isWindingDown { for operation in operations { searchForCycle(through: operation) } }
    admitted()
    return .admitted
  }

  private func add(_ operations: ArraySlice<Operation>, to outer: GroupOperation, skipping: Skipping) {
    let (firstIndex, isWindingDown) = state.withLock { state in
      state.schedule.admit(operations.count)
      state.progress.add(operations.count)
      return (state.members.append(operations), state.schedule.isWindingDown)
    }
    var ready: [ReadyMember] = []
    var parts: [MemberPart] = []
    var skipped: [Int] = []
    ready.reserveCapacity(operations.count)
    for (operation, index) in zip(operations, firstIndex...) {
      switch claim(operation, index: index) {
      case .claimed(let isReady, let hasExtras):
        if let own = operation as? AsyncOperation, hasExtras || own is GroupOperation {
          parts.append(MemberPart(own, index: index))
        }
        if isReady { ready.append(ReadyMember(operation)) }
      case .repeated where skipping != .none, .refused where skipping == .taken: skipped.append(index)
      case .repeated: misuse(operation.cannotBeAdded(because: "is in this group"))
      case .refused(let obstacle): misuse(operation.cannotBeAdded(because: obstacle))
      }
    }
    for case let group as GroupOperation in parts.lazy.map(\.operation) { group.refuse(enclosing: outer) }
    // The flag of the group is set before its members are cancelled, and whoever has seen it expects as much here.
    if isWindingDown || outer.isCancelled { for operation in operations { cancel(operation) } }
    state.withLock { state in
      for index in skipped { _ = state.members.remove(at: index) }
      for part in parts { state.weigh(part) }
      state.progress.add(-skipped.count)
      state.schedule.append(ready)
      if ready.count + skipped.count < operations.count { state.schedule.isCycleSuspected = true }
    }
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
    if operation.isExecuting || operation.isFinished { return .refused(because: "has been started") }
    let isRepeated = state.withLock { state in
      if state.foreignMembers[ObjectIdentifier(operation)] != nil { return true }
      state.foreignMembers[ObjectIdentifier(operation)] = index
      return false
    }
    return isRepeated ? .repeated : .claimed(isReady: !waitsForSomething(operation), hasExtras: false)
  }

  /// Arranges for a plain Foundation member to be taken up when what it waits for has finished.
  private func waitsForSomething(_ member: Operation) -> Bool {
    let waitedFor = member.isReady ? [] : member.dependencies.filter { !$0.isFinished }
    if waitedFor.isEmpty { return false }
    // The relay keeps the member alive as long as Foundation, on Linux, may use a pointer to it that retains nothing.
    let relay = FinishRelay { [weak self] in self?.foreignMemberIsReady(member) }
    let isWaiting = state.withLock { state in
      if state.hasCancelledMembers { return false }
      state.waitingForeignMembers[ObjectIdentifier(member)] = ForeignWait(relay: relay, operations: waitedFor)
      return true
    }
    if isWaiting { relay.wait(for: waitedFor) }
    return isWaiting
  }

  /// What it waited for has finished, or it has been cancelled. Counts once.
  func foreignMemberIsReady(_ member: Operation) {
    let id = ObjectIdentifier(member)
    let isNews = state.withLock { state in
      guard let wait = state.waitingForeignMembers[id], !wait.isOver else { return false }
      state.waitingForeignMembers[id]?.isOver = true
      return true
    }
    if isNews { becameReady(member) }
  }

  /// Ends an operation that was added to a group after its cancellation had ended it.
  private func finishUnexecuted(_ operation: Operation) {
    (operation as? AsyncOperation)?.claim(for: nil)
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
