import Foundation

extension AsyncOperation {
  /// Runs an operation, with its dependencies that are in no queue or group, inside this one. A group, if there is one,
  /// contains the operation. An operation that depends on nothing and needs no thread runs without a group.
  func runInside<Output: Sendable>(
    _ work: AnyOutputOperation<Output>,
    in group: GroupOperation? = nil,
    then body: @escaping @Sendable (InnerOutcome<Output>) -> Void
  ) {
    let operation = work.operation
    // A group waits for the work of what runs others inside, after their end.
    let isSimple = operation.beginsElsewhere && (!operation.runsOthersInside || operation is GroupOperation)
    if group == nil, isSimple, operation.core.withLock({ $0.takePlaceAlone(inside: self) }) {
      for follower in trace { follower.noteMembers([operation]) }
      return start(operation) { body(InnerOutcome(of: work)) }
    }
    let group = group ?? makePrivateGroup(of: operation)
    // Adds the dependencies only now, because they may be added only if the operation was.
    group.addGraph(endingIn: operation)
    start(group) { body(InnerOutcome(of: work, in: group)) }
    for member in group.members { member.startWaitLimit() }
  }

  private func makePrivateGroup(of operation: AsyncOperation, skipping: Addition.Skipping = .none) -> GroupOperation {
    let group = GroupOperation()
    group.name = displayName
    group.qualityOfService = keepPlace().quality
    // Before a wait limit begins. Otherwise every operation inside would also search all enclosing ones for the clock.
    group.clock = clock
    group.core.withLock { $0.takePlace(inside: self) }
    group.engine.add([operation], skipping: skipping, to: group)
    return group
  }

  /// Runs an operation inside this one or, if it is in a queue or group or has been started, waits for it.
  func runInsideOrFollow<Output: Sendable>(
    _ work: AnyOutputOperation<Output>,
    then body: @escaping @Sendable (InnerOutcome<Output>) -> Void
  ) {
    if work.operation.isFree {
      // Empty if another thread has just added the operation elsewhere.
      let group = makePrivateGroup(of: work.operation, skipping: .unnamed(except: []))
      if !group.operations.isEmpty { return runInside(work, in: group, then: body) }
    }
    let wait = AsyncOperation().waits(for: work.operation)
    wait.core.withLock { $0.takePlace(inside: self) }
    start(wait) { body(wait.isCancelled ? InnerOutcome(failure: CancellationError()) : InnerOutcome(of: work)) }
  }

  /// Runs a private operation inside this one when its dependencies have finished, cancelled if this one is over.
  private func start(_ inner: AsyncOperation, then body: @escaping @Sendable () -> Void) {
    let (engine, isOver, previous) = core.withLock { core in
      let isOver = !core.lifecycle.canContinue
      return (core.engine, isOver, isOver ? nil : exchange(&core.makeExtras().inner, with: inner))
    }
    withExtendedLifetime(previous) {}
    if let engine { inner.whenFinished { engine.workContinues(in: inner) } }
    if isOver { inner.cancel() }
    let lent = core.withLock { $0.lent }
    if lent > 0 { inner.escalatePriority(to: TaskPriority(rawValue: lent)) }
    for follower in trace { follower.noteMembers(inner.members) }
    _ = inner.startOrResume(by: nil)
    inner.startWaitLimit()
    if inner.core.withLock({ $0.ledger.isWaiting }) { WaitWatch.watch(self) }
    // Last, because another thread may end the operation while this one still uses the context that `body` uses.
    inner.whenFinished(body)
  }

  /// Calls `body` when no work of the operation, which has ended, runs any more.
  func whenDrained(_ body: @escaping @Sendable () -> Void) {
    if let engine = engineOfMembers {
      engine.waitForDrain(body)
    } else if let task = core.withLock({ $0.task }) {
      Task.detached {
        await task.value
        body()
      }
    } else {
      body()
    }
  }

  /// Continues with `work`, called `next` in a stall report, after the work of the former operation and a delay.
  func continueLater(
    behind former: AsyncOperation?,
    after delay: Duration,
    before next: String,
    with work: @escaping @Sendable () -> Void
  ) {
    if let former {
      former.whenDrained { self.continueLater(behind: nil, after: delay, before: next, with: work) }
      return
    }
    for follower in trace { follower.notePause() }
    let work = { @Sendable in
      for follower in self.trace { follower.noteEndOfPause() }
      work()
    }
    // Each attempt of an operation with keys takes them anew.
    if delay > .zero || core.withLock({ $0.keys != nil }) {
      pause(for: delay, before: next, then: work)
    } else if keepPlace().queue != nil {
      keepPlace().run(work)
    } else {
      // Avoids recursion, because the work may end inside this call.
      Trampoline.run(work)
    }
  }
}
