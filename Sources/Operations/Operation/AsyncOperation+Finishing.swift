public import Foundation

extension AsyncOperation {
  /// Finishes the operation. Returns whether that counts. `store` stores the value, under the lock.
  @discardableResult
  final func finish(reporting report: FailureReport?, storing store: () -> Void = {}) -> Bool {
    let (interrupted, trace) = core.withLock { core -> (OperationLifecycle.Phase?, [OperationFollower]) in
      let interrupted = core.lifecycle.finish(report)
      if interrupted != nil { store() }
      return (interrupted, core.trace)
    }
    switch interrupted {
    case nil: return false
    case .suspended: finishUnexecuted()
    case .executing, .paused: end(afterExecution: true, trace)
    // The thread that starts or prepares the operation ends it.
    case .pending, .preparing: break
    case .skipped, .ending, .finished: misuse("A finish counts only before the end of \(quotedName).")
    }
    return true
  }

  /// Ends an operation that is executing or skipped, without recording an outcome.
  final func finishNow() {
    let (isAfterExecution, trace) = core.withLock { ($0.lifecycle.end(), $0.trace) }
    if let isAfterExecution { end(afterExecution: isAfterExecution, trace) }
  }

  /// Carries out the end. Called once, after the operation's own `start()` has begun.
  private func end(afterExecution isAfterExecution: Bool, _ trace: [OperationFollower]) {
    for follower in trace { follower.noteEnd(of: self) }
    // Foundation refuses to start an operation that it considers waiting. It considers a cancelled operation ready only
    // after Foundation's own `cancel()`, which another thread may not have called yet. It considers the operation
    // waiting again if a third thread added the gate before that call.
    if !isAfterExecution, isCancelled, !super.isCancelled || !super.isReady { super.cancel() }
    prepareToFinish()
    if super.isExecuting {
      // Foundation would trap in `start()`.
      misuse(
        "\(quotedName) cannot finish because a key-value notification of isExecuting was sent for it. Remove the "
          + "notifications and the dependent key paths from \(Self.self): AsyncOperation notifies Foundation itself."
      )
    }
    // `main()` is empty, so this only makes the transition to finished, and notifies the queue, the dependents and the
    // waiters. The queue has not started an operation that has expired there.
    let block = isAfterExecution ? nil : super.completionBlock
    if isAfterExecution || !core.withLock({ $0.completeEarlyEnd() }) {
      super.start()
    } else if let block {
      DispatchQueue.global().async(execute: block)
    }
    Trampoline.callUserCode { didFinish() }
    let end = core.withLock { $0.complete() }
    if !isAfterExecution { willNotExecute() }
    if let end { notifyOfEnd(end) } else { notifyObserversAndClose() }
  }

  private func notifyObserversAndClose() {
    let (observers, engine) = core.withLock { core in
      defer { core.observers = [] }
      return (core.observers, core.engineToProcess)
    }
    if !observers.isEmpty { Trampoline.callUserCode { for observer in observers { observer.didFinish?(self) } } }
    if let engine { engine.collect(self) } else { close() }
  }

  /// Releases the keys, and notifies the dependents, the waiters and the group, which has collected the result.
  final func close() {
    // Once the operation is closed, `finished()` returns at once, and the keys must be free by then.
    if let keys = core.withLock({ $0.keys }) { Trampoline.asOneCall { leaveKeys(keys, forGood: true) } }
    notifyOfEnd(core.withLock { $0.close() })
  }

  private func notifyOfEnd(_ end: OperationCore.End) {
    end.extras?.progress?.end()
    let runner = end.membership?.runner
    // A member keeps the clock of its group after its end, unless it has its own.
    if let clock = runner?.clock { core.withLock { if $0.extras?.clock == nil { $0.makeExtras().clock = clock } } }
    if !end.dependents.isEmpty {
      Trampoline.asOneCall { for dependent in end.dependents { dependent.operation?.dependencyDidFinish() } }
    }
    for waiter in end.waiters.elements { waiter() }
    // The table of keys ends a request, which may lend its keys.
    if end.work?.claimant == nil { end.work?.end() }
    runner?.memberDidClose(self, end)
    // Last, because cancellation handlers are code of the user.
    end.task?.cancel()
    AsyncOperation.release(end.extras)
    for case .foreign(_, let relay) in end.dependencies { relay.stop() }
  }

  /// Calls `waiter` after the observers, and returns its number, or calls it at once if the operation is closed.
  @discardableResult
  final func whenFinished(_ waiter: @escaping @Sendable () -> Void) -> Int? {
    let number = core.withLock { $0.isClosed ? nil : $0.waiters.append(waiter) }
    if number == nil { waiter() }
    return number
  }

  // MARK: Releasing

  /// Releases dependencies without recursing down a chain. The caller must hold no other reference to them.
  static func release(_ dependencies: consuming [DependencyLedger.Dependency]) {
    var operations: [AnyObject] = []
    while let dependency = dependencies.popLast() {
      if case .foreign(_, let relay) = dependency { relay.stop() }
      operations.append(dependency.operation)
    }
    Trampoline.release(consume operations)
  }

  /// Stops the timers and the inner operation, and releases the producers of hand-overs without recursion.
  static func release(_ extras: consuming OperationExtras?) {
    guard let former = extras.take() else { return }
    former.deadline?.cancel()
    former.pause?.timer.cancel()
    var operations: [AnyObject] = former.handOvers.takeAll().map(\.producer)
    // An inner operation is still running if this operation timed out or another caller finished it.
    if let inner = former.inner.take() {
      Trampoline.run {
        inner.cancel()
        inner.finishNow()
      }
      operations.append(inner)
    }
    _ = consume former
    Trampoline.release(consume operations)
  }

  // MARK: The outcome

  /// Waits until the operation has finished, and throws the error with which it ended. The method `finished()` also
  /// waits, and never throws. Cancelling the waiting task ends the wait at once, and does not cancel the operation.
  ///
  /// A `Task { }` inherits the work in which it is created, so its waits count as waits of that operation. A
  /// `Task.detached` does not. A wait that can never end throws within about a second: see <doc:DebuggingStalls>.
  ///
  /// - Throws: A `CancellationError` if the wait ended before the operation. An ``OperationError`` with the code
  ///   ``OperationError/Code/waitCycle`` if the wait could never end. After a timeout, one with the code
  ///   ``OperationError/Code/timedOut``. Otherwise, an ``AggregateError`` for a group or for several errors, the error
  ///   itself for a single error, or `CancellationError` if the operation was cancelled and has no error.
  public final func completed() async throws {
    try await awaitEnd()
    if let error = outcomeError { throw error }
  }

  /// Throws only if the operation is not closed, because the task is cancelled or would wait forever.
  func awaitEnd(onCancel: Waiter? = nil) async throws {
    if core.withLock({ $0.isClosed }) { return }
    let wait = await lendingPriority(to: escalatePriority) { await waitForEnd(onCancel: onCancel) }
    try wait?.throwIfRefused()
    if core.withLock({ !$0.isClosed }) { throw CancellationError() }
  }

  var outcomeError: (any Error)? {
    let lifecycle = core.withLock { $0.lifecycle }
    if lifecycle.failures.isEmpty { return lifecycle.decision == .cancellation ? CancellationError() : nil }
    let failures = failures(of: lifecycle)
    let isOneError = failures.count == 1 && !failures[0].isOfAggregate && !(self is GroupOperation)
    if isOneError || lifecycle.decision == .timeout { return failures[0].error }
    let name = displayName
    return AggregateError(failures.map { $0.below(name) }, isCancelled: lifecycle.isCancelled)
  }

  final var ownFailures: [OperationFailure] { failures(of: core.withLock { $0.lifecycle }) }

  /// After a timeout, one failure whose causes are the others.
  private func failures(of lifecycle: OperationLifecycle) -> [OperationFailure] {
    let failures = lifecycle.failures
    guard lifecycle.decision == .timeout, failures.count > 1, let timeout = failures[0].error as? OperationError else {
      return failures
    }
    let name = displayName
    let causes = failures.dropFirst().map { $0.hasPath ? $0.below(name) : $0.error }
    let error = OperationError(timeout.code, timeout.message, underlyingErrors: causes)
    return [OperationFailure(path: [], error: error)]
  }
}

extension Operation {
  /// Waits until the operation has finished or the waiting task is cancelled, and never throws. To throw the error of an
  /// ``AsyncOperation``, call ``AsyncOperation/completed()``.
  ///
  /// The method holds no thread, and does not start the operation. Before it returns, the observers of an
  /// ``AsyncOperation`` are notified and its keys are released. Cancelling the task does not cancel the operation, and
  /// a wait that can never end returns early (see <doc:DebuggingStalls>), so check `isFinished` if either can occur.
  public func finished() async {
    _ = await waitForEnd()
  }

  /// Returns the wait, which may have been refused, if the current task does some work.
  fileprivate func waitForEnd(onCancel: Waiter? = nil) async -> TaskWait? {
    var wait: TaskWait?
    await waitOrUnregister(onCancel: onCancel) { resume in
      wait = TaskWait.begin(.operation(self)) { _ in resume() }
      return whenEnded(resume)
    }
    wait?.end()
    return wait
  }

  /// - Returns: A closure that ends the wait without calling `body`.
  func whenEnded(_ body: @escaping @Sendable () -> Void) -> (() -> Void)? {
    if let operation = self as? AsyncOperation {
      return operation.whenFinished(body).map { number in
        { _ = operation.core.withLock { $0.waiters.remove(number) } }
      }
    }
    if isFinished {
      body()
      return nil
    }
    let relay = FinishRelay(body)
    relay.wait(for: self)
    return { relay.stop() }
  }
}
