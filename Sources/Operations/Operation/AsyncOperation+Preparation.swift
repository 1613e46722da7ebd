import Foundation

/// What comes between the start of an operation and its execution.
extension AsyncOperation {
  // MARK: Conditions

  /// Makes the execution depend on a condition. Conditions are evaluated in the order they were added, when everything
  /// the operation waits for has finished, and no further than to the first that is not met.
  ///
  /// While they are evaluated the operation is pending, keeps the slot it has in its queue or group, and holds no
  /// thread. Cancelling or finishing it then ends it at once. If all are met it executes where it would have without
  /// them:
  ///
  /// - in ``SerialScheduler/queue`` on the scheduler;
  /// - in a group on a thread of the group;
  /// - in `OperationQueue.main` on the main queue;
  /// - in another queue on its `underlyingQueue`, if it has one, or on one of the system's threads.
  ///
  /// `OperationQueue.current` is then the same in a group and on the main thread. Elsewhere it is nil, because Foundation
  /// sets it only where it starts an operation. Suspending the queue meanwhile does not delay the execution: the operation
  /// has been started.
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

  // MARK: On the way to execution

  /// Prepares the operation on the thread that started it.
  func prepare() {
    guard let permit = core.withLock({ $0.extras?.permit }), !permit.acquire(isStarted: true) else {
      return prepareInputs()
    }
    guard core.withLock({ $0.proceed(to: .evaluating) }) else { return skipExecution() }
    let place = keepPlace()
    permit.whenGranted { [weak self] in
      guard let self else { return }
      place.run { self.resume { self.prepareInputs() } }
    }
  }

  private func prepareInputs() {
    let (conditions, handOvers, timeout) = core.withLock { core in
      (core.extras?.conditions ?? [], core.extras?.handOvers ?? [], core.extras?.spentTimeout)
    }
    if let timeout { cancel(.timeout(timeoutError(timeout))) }
    let missing = handOvers.compactMap { $0.missingInput }
    if !missing.isEmpty { cancel(because: OperationError.inputUnavailable(to: self, missing)) }
    if conditions.isEmpty { return handOver() }
    guard core.withLock({ $0.proceed(to: .evaluating) }) else { return skipExecution() }
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
          // Ended meanwhile, by whoever it was.
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

  /// Gives the operation its inputs, and lets it execute.
  private func handOver() {
    let handOvers = core.withLock { core -> [HandOver] in
      defer { core.extras?.handOvers = [] }
      return core.extras?.handOvers ?? []
    }
    for handOver in handOvers {
      // One of those before may have ended it.
      if core.withLock({ !$0.lifecycle.mayExecute }) { break }
      handOver.carryOut(to: self)
    }
    // The ledger still holds the producers: this is not their last reference.
    _ = consume handOvers
    let execution = core.withLock { $0.proceed(to: .executing) ? $0.execution : nil }
    if let execution { carryOut(execution) } else { skipExecution() }
  }

  // MARK: Tasks

  /// Takes a task that works for the operation: it is cancelled with it, and when it ends.
  ///
  /// - Parameter phase: What it works in. If that is over the task has nothing to do any more.
  func adopt(_ task: Task<Void, Never>, while phase: OperationLifecycle.Phase) {
    let superfluous = core.withLock { core -> Task<Void, Never>? in
      guard core.lifecycle.phase == phase, !core.lifecycle.isCancelled else { return task }
      return core.makeExtras().exchange(\.task, task)
    }
    superfluous?.cancel()
  }

  // MARK: The end

  /// Stops what still goes on, and lets go of the operations whose values were to be handed over, without recursion.
  static func letGo(of extras: consuming OperationExtras.Remains) {
    extras.deadline?.cancel()
    extras.pause?.timer?.cancel()
    extras.task?.cancel()
    // If it still runs this operation timed out, or was finished from outside: nobody waits for it any more.
    if let inner = extras.inner {
      Trampoline.run {
        inner.cancel()
        inner.endIfNotEnded()
      }
    }
    var operations: [AnyObject] = []
    if let inner = extras.inner { operations.append(inner) }
    for handOver in extras.handOvers { operations.append(handOver.producer) }
    _ = consume extras
    Trampoline.release(consume operations)
  }
}
