import Foundation

/// The lifecycle's actions, carried out after the lock has been released.
extension AsyncOperation {
  // MARK: Starting

  /// The result of an attempt to start the operation. See ``OperationCore/StartAction``.
  enum Beginning {
    case begun
    case notReady
    case awaitGate
    case isGone
  }

  /// Starts the operation for its group, if it is still ready.
  func startAsMember(by starter: OperationStarter?) -> Beginning { begin(by: .member(of: starter)) }

  func begin(by starter: OperationCore.Starter) -> Beginning {
    switch core.withLock({ $0.start(by: starter) }) {
    case .execute(let execution): carryOut(execution)
    case .prepare: prepare()
    case .resume(let pause): pause.resume()
    case .skip: finishUnexecuted()
    case .ignore: break
    case .notReady: return .notReady
    case .awaitGate: return .awaitGate
    case .isGone: return .isGone
    case .refuse: misuse("\(quotedName) has been started before. An operation runs once: make a new one.")
    case .isMember:
      misuse("\(quotedName) is a member of a group, which starts it. Start the group, or add it to a queue.")
    }
    return .begun
  }

  /// Handles the start of an operation that still counts unfinished dependencies.
  ///
  /// - Returns: Whether the operation was started. Otherwise the count is now zero, and the caller must start the
  ///   operation again.
  func startUnready() -> Bool {
    let permit = core.withLock { $0.ledger.isPermitPending ? $0.extras?.permit : nil }
    let unfinished = dependencies.filter { !$0.isFinished }
    if unfinished.isEmpty, permit == nil {
      // The dependencies have finished, but the last of them has not notified this operation yet. A thread that waited
      // for them with `waitUntilFinished` can get here first.
      if let gate = core.withLock({ $0.ledger.endCounting() }) { open(gate) }
      return false
    }
    // A queue may start an operation that has just gained a dependency. Foundation runs such an operation, and so does
    // this method.
    guard OperationQueue.current?.operations.contains(where: { $0 === self }) == true else {
      if unfinished.isEmpty, let permit {
        misuse("\(quotedName) is not ready: it waits for \(permit.goal). Leave it to its queue, which starts it then.")
      }
      misuse(
        "\(quotedName) is not ready: it waits for \(unfinished.quotedNames). Add it to a queue, which starts it when they "
          + "have finished, or start it after them."
      )
    }
    _ = begin(by: .queue)
    return true
  }

  func carryOut(_ execution: OperationCore.Execution) {
    execution.trace?.send(.started)
    if !execution.observers.isEmpty, !notifyOfStart(execution.observers) {
      releaseWork()
      return finishUnexecuted()
    }
    // An observer may have set another timeout.
    if execution.hasTimeout, !startsDeadlineItself, !startDeadline() { return releaseWork() }
    execute()
    execution.trace?.send(.executionReturned)
  }

  // MARK: Finishing

  func carryOut(_ finish: OperationCore.Finish) {
    switch finish.action {
    case .end: completeFinish(afterExecution: true, finish.trace)
    case .skip: finishUnexecuted()
    case .keep, .ignore: break
    }
  }

  /// Carries out the end. Called once, after the operation's own `start()` has begun.
  func completeFinish(afterExecution hasExecuted: Bool, _ trace: OperationTrace?) {
    trace?.send(.ended(self))
    // Foundation refuses to start an operation that it considers waiting. It considers a cancelled operation ready only
    // after Foundation's own `cancel()`, which another thread may not have called yet. It considers the operation
    // waiting again if a third thread added the gate before that call.
    if !hasExecuted, isCancelled, !super.isCancelled || !super.isReady { super.cancel() }
    prepareToFinish()
    // `main()` is empty, so this only makes the transition to finished, and notifies the queue, the dependents and the
    // waiters.
    super.start()
    Trampoline.isolate { didFinish() }
    let (observers, hasCompletionBlock, end) = core.withLock { core in
      core.lifecycle.complete()
      defer { core.observers = [] }
      return (core.observers, core.hasCompletionBlock, core.observers.isEmpty ? core.takeFinish() : nil)
    }
    if hasCompletionBlock { super.completionBlock = nil }
    if !hasExecuted { releaseWork() }
    if !observers.isEmpty { Trampoline.isolate { for observer in observers { observer.didFinish?(self) } } }
    notifyOfFinish(end ?? core.withLock { $0.takeFinish() })
  }

  private func notifyOfFinish(_ end: OperationCore.End) {
    end.extras?.progress?.end()
    end.extras?.permit?.operationIsOver()
    if let clock = end.starter?.clock { core.withLock { $0.keep(clock) } }
    // A group that cancels its other members after a failure must do so before the dependents of the failed member can
    // start.
    let isFailureFirst = end.failed && end.starter?.isNotifiedOfFailuresFirst == true
    if isFailureFirst { notifyStarter(of: end) }
    for dependent in end.remains.dependents { dependent?.operation?.dependencyDidFinish() }
    for waiter in end.waiters { waiter() }
    if !isFailureFirst { notifyStarter(of: end) }
    if let extras = end.extras { AsyncOperation.release(extras) }
    for case .foreign(let operation, let relay)? in end.remains.dependencies { relay.stop(waitingFor: [operation]) }
  }

  private func notifyStarter(of end: OperationCore.End) {
    end.starter?.memberDidFinish(self, index: end.memberIndex, failed: end.failed, holdsSlot: end.holdsSlot)
  }

  /// Notifies the observers of the start.
  ///
  /// - Returns: Whether the operation may execute. An observer may have cancelled or finished it.
  private func notifyOfStart(_ observers: [OperationObserver]) -> Bool {
    let wasFinishRequested = isFinishRequested
    var mayExecute: Bool { core.withLock { $0.lifecycle.canContinue } && isFinishRequested == wasFinishRequested }
    Trampoline.isolate { for observer in observers where mayExecute { observer.didStart?(self) } }
    return mayExecute
  }

  // MARK: Cancelling

  final func cancel(because error: any Error) { cancel(.failure(FailureReport([error]))) }

  /// Cancels the operation and everything inside it, without recursion, because groups can be nested to any depth.
  ///
  /// - Parameter unlessStarted: Whether to leave an executing operation alone.
  final func cancel(_ reason: OperationLifecycle.CancelReason, unlessStarted: Bool = false) {
    beginCancelling(reason, unlessStarted: unlessStarted)?.reachMembers()
  }

  /// Cancels operations that wait for each other, so that none of them executes.
  ///
  /// Cancelling an operation may finish it, so all of them are marked as cancelled before the first can finish.
  static func cancel(_ operations: [(operation: AsyncOperation, error: OperationError)], plain: [Operation]) {
    let begun = operations.compactMap { $0.beginCancelling(.failure(FailureReport([$1]))) }
    for operation in plain { operation.cancelAsMember() }
    for cancellation in begun { cancellation.reachMembers() }
  }

  /// A cancellation in progress. It ends when all members have been cancelled.
  private struct Cancellation {
    let operation: AsyncOperation
    /// The members that have not been cancelled yet.
    var members: ArraySlice<Operation>
    let task: Task<Void, Never>?
    let supervisor: OperationSupervisor?
    let whileExecuting: Bool
    let skips: Bool

    /// Cancels the members and their members. Each cancellation ends after those of its members.
    func reachMembers() {
      var path = [self]
      while let last = path.indices.last {
        guard let next = path[last].members.popFirst() else {
          let cancellation = path.removeLast()
          cancellation.operation.end(cancellation)
          continue
        }
        if let own = next as? AsyncOperation {
          if let inside = own.beginCancelling(.none) { path.append(inside) }
        } else {
          next.cancelAsMember()
        }
      }
    }
  }

  /// Marks the operation as cancelled and notifies its observers.
  ///
  /// - Returns: The cancellation, which the caller must continue. Nil if the cancellation has no effect.
  private func beginCancelling(_ reason: OperationLifecycle.CancelReason, unlessStarted: Bool = false) -> Cancellation?
  {
    let (action, observers, supervisor, permit, task, inner, trace) = core.withLock { core in
      let action = core.lifecycle.cancel(reason, unlessStarted: unlessStarted)
      let supervisor = action == .ignore ? nil : core.takeReadiness()
      let extras = core.extras
      return (action, core.observers, supervisor, extras?.permit, extras?.task, extras?.inner, core.trace)
    }
    guard case .announce(let whileExecuting, let skips) = action else { return nil }
    trace?.send(.cancelled)
    Trampoline.isolate { for observer in observers { observer.didCancel?(self) } }
    permit?.operationWasCancelled()
    return Cancellation(
      operation: self,
      members: (inner.map { [$0] } ?? takeMembersToCancel())[...],
      task: task,
      supervisor: supervisor,
      whileExecuting: whileExecuting,
      skips: skips
    )
  }

  private func end(_ cancellation: Cancellation) {
    membersWereCancelled()
    cancellation.task?.cancel()
    if cancellation.whileExecuting { Trampoline.isolate { didCancel() } }
    super.cancel()
    cancellation.supervisor?.memberIsReady(self)
    if cancellation.skips { finishUnexecuted() }
  }
}
