import Foundation

/// The steps between the start of an operation and its execution.
extension AsyncOperation {
  // MARK: Conditions

  /// Adds a condition that must be met for the operation to execute.
  ///
  /// Conditions are evaluated when all dependencies have finished, in the order they were added, up to the first that
  /// is not met. During the evaluation, the operation is pending, occupies its slot in its queue or group, and holds no
  /// thread. Cancelling or finishing the operation then ends it at once.
  ///
  /// If all conditions are met, the operation executes in the place where it would have executed without them:
  ///
  /// - In ``SerialScheduler/queue``: on the scheduler.
  /// - In a group: on a thread of the group.
  /// - In `OperationQueue.main`: on the main queue.
  /// - In another queue: on its `underlyingQueue`, if it has one, or on a thread of the system.
  ///
  /// In a group and on the main thread, conditions do not change `OperationQueue.current`. Elsewhere the property is
  /// then nil, because Foundation sets it only where it starts an operation. Suspending the queue during the evaluation
  /// does not delay the execution, because the operation has been started.
  ///
  /// - Precondition: The operation has not been started.
  public final func addCondition(_ condition: OperationCondition) {
    let isTooLate = core.withLock { core in
      if core.lifecycle.phase != .pending { return true }
      core.makeExtras().conditions.append(condition)
      return false
    }
    if isTooLate {
      misuse(
        "\(quotedName) has been started: it is too late for its condition “\(condition.name)”. Add conditions before the "
          + "operation is added to a queue or a group."
      )
    }
  }

  // MARK: Preparation

  /// Prepares the operation on the thread that started it.
  func prepare() {
    let (permit, isMember) = core.withLock { ($0.extras?.permit, $0.supervisor != nil) }
    guard let permit, !permit.acquire(waits: !isMember) else { return prepareInputs() }
    if isMember { return awaitPermitAgain() }
    guard core.withLock({ $0.proceed(to: .evaluating) }) else { return finishUnexecuted() }
    let place = keepPlace()
    noteWaitForPermit()
    permit.whenGranted { [weak self] in
      guard let self else { return }
      place.run { self.resume { self.prepareInputs() } }
    }
  }

  private func prepareInputs() {
    let (conditions, handOvers, timeout) = core.withLock { core in
      (core.extras?.conditions ?? [], core.extras?.handOvers.entries ?? [], core.extras?.spentTimeout)
    }
    if let timeout { cancel(.timeout(timeoutError(timeout))) }
    let missing = handOvers.compactMap { $0.missingInput }
    if !missing.isEmpty { cancel(because: OperationError.inputUnavailable(to: self, missing)) }
    if conditions.isEmpty { return handOver() }
    guard core.withLock({ $0.proceed(to: .evaluating) }) else { return finishUnexecuted() }
    evaluate(conditions)
  }

  private func evaluate(_ conditions: [OperationCondition]) {
    let place = keepPlace()
    adopt(
      Task { [self] in
        for condition in conditions {
          core.withLock { $0.makeExtras().condition = condition.name }
          do { try await condition.evaluate(self) } catch {
            let failure = condition.failure(of: self, because: error)
            let report = FailureReport([failure])
            let finish = core.withLock { $0.lifecycle.phase == .evaluating ? $0.finish(report) : nil }
            if let finish { carryOut(finish) }
            return
          }
          // Another thread has ended the operation meanwhile.
          if core.withLock({ $0.lifecycle.phase != .evaluating }) { return }
        }
        place.run { self.resume { self.handOver() } }
      },
      while: .evaluating
    )
  }

  private func resume(_ body: () -> Void) {
    if core.withLock({ $0.lifecycle.resume() }) { body() }
  }

  /// Passes the inputs to the operation, and executes it.
  private func handOver() {
    let handOvers = core.withLock { $0.extras?.handOvers.takeAll() ?? [] }
    for case let handOver? in handOvers {
      // An earlier hand-over may have ended the operation.
      if core.withLock({ !$0.lifecycle.mayExecute }) { break }
      handOver.carryOut(to: self)
    }
    // The ledger still holds the producers, so this does not release the last reference to them.
    _ = consume handOvers
    let execution = core.withLock { $0.proceed(to: .executing) ? $0.execution : nil }
    if let execution { carryOut(execution) } else { finishUnexecuted() }
  }

  // MARK: Tasks

  /// Stores a task that works for the operation. The task is cancelled when the operation is cancelled or ends.
  ///
  /// - Parameter phase: The phase the task works in. If the operation has left the phase or was cancelled, the task is
  ///   cancelled at once.
  func adopt(_ task: Task<Void, Never>, while phase: OperationLifecycle.Phase) {
    let superfluous = core.withLock { core -> Task<Void, Never>? in
      guard core.lifecycle.phase == phase, !core.lifecycle.isCancelled else { return task }
      return core.makeExtras().exchange(\.task, task)
    }
    superfluous?.cancel()
  }

  // MARK: The end

  /// Stops the timers, the task and the inner operation, and releases the producers of hand-overs without recursion.
  static func release(_ extras: consuming OperationExtras.Remains) {
    extras.deadline?.cancel()
    extras.pause?.timer.cancel()
    extras.task?.cancel()
    // An inner operation is still running if this operation timed out or another caller finished it.
    if let inner = extras.inner {
      Trampoline.run {
        inner.cancel()
        inner.finishNow()
      }
    }
    var operations: [AnyObject] = []
    if let inner = extras.inner { operations.append(inner) }
    for case let handOver? in extras.handOvers { operations.append(handOver.producer) }
    _ = consume extras
    Trampoline.release(consume operations)
  }
}
