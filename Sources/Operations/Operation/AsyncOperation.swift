public import Foundation

/// An operation whose work can continue after `execute()` has returned, on any thread, until it calls `finish`.
///
/// Subclass it, start the work in ``execute()``, and call ``finish()`` when the work is done:
///
/// ```swift
/// final class Download: AsyncOperation, @unchecked Sendable {
///   private let url: URL
///
///   init(_ url: URL) { self.url = url }
///
///   override func execute() {
///     URLSession.shared.dataTask(with: url) { [self] _, _, error in
///       if let error { return finish(with: error) }
///       finish()
///     }.resume()
///   }
/// }
/// ```
///
/// It is a Foundation `Operation` and runs in any `OperationQueue`, in a ``GroupOperation``, or through `start()`.
///
/// ## Finishing
///
/// An operation finishes once. `finish` may be called more than once, from many threads, and inside `execute`. The
/// first call counts. A call before the start makes the operation finish without executing when it is started.
/// ``errors`` are complete before `isFinished` turns true.
///
/// When an operation has finished, it releases its dependencies, its observers and its `completionBlock`.
///
/// ## Cancellation
///
/// Cancelling sets a flag and calls ``didCancel()``. An executing operation keeps executing until it finishes. An
/// operation that has not started never executes, and finishes when it is started.
///
/// ## Threads
///
/// Every member may be called from every thread, including `name`.
///
/// ## Key-value observing
///
/// The operation uses none. When the work has ended, it calls Foundation's own `start()`, which makes the transition
/// to finished. `queue.progress` therefore counts the operation, which it does not with the classic override of
/// `isFinished`.
open class AsyncOperation: Operation, @unchecked Sendable {
  /// The state of an operation.
  public enum State: Sendable {
    /// The operation has neither executed nor finished.
    case pending
    /// The work has begun and has not finished.
    case executing
    /// The operation has finished, as in `isFinished`. A cancelled operation may have finished without executing.
    case finished
  }

  let core: Locked<OperationCore>

  public override init() {
    core = Locked(OperationCore())
    super.init()
  }

  deinit {
    var extras: OperationExtras.Remains?
    AsyncOperation.release(
      core.withLock { core in
        extras = core.extras?.takeRemains()
        return core.ledger.close().dependencies
      }
    )
    extras?.permit?.operationIsOver()
    if let extras = extras.take() { AsyncOperation.release(consume extras) }
  }

  // MARK: State

  /// The current state of the operation. It may have changed by the time the caller uses it.
  public final var state: State {
    let lifecycle = core.withLock { $0.lifecycle }
    switch lifecycle.phase {
    case .pending, .preparing, .evaluating, .skipped: return .pending
    case .executing: return .executing
    case .ending:
      if isFinished { return .finished }
      return lifecycle.hasExecuted ? .executing : .pending
    case .finished: return .finished
    }
  }

  /// The errors of the operation, in the order they occurred. Complete before `isFinished` turns true.
  public final var errors: [any Error] { ownFailures.map(\.error) }

  /// Whether the operation has finished without errors and was not cancelled.
  public final var isSuccessful: Bool {
    guard isFinished else { return false }
    return core.withLock { !$0.lifecycle.isCancelled && $0.lifecycle.failures.isEmpty }
  }

  /// Whether the work has begun and has not finished. False while conditions are evaluated.
  public final override var isExecuting: Bool { core.withLock { $0.lifecycle.phase == .executing } }

  /// Whether the operation was cancelled before it finished. Once true, it stays true.
  public final override var isCancelled: Bool { core.withLock { $0.lifecycle.isCancelled } }

  /// Whether the operation has finished. Its errors and its value are then complete.
  ///
  /// This is Foundation's implementation. It is final so that the compiler rejects the override of a subclass that
  /// sends key-value notifications.
  public final override var isFinished: Bool { super.isFinished }

  /// Always true, because the work may outlast `start()`.
  public final override var isAsynchronous: Bool { true }

  /// The name. Unlike Foundation's, it may be read and written on any thread.
  public final override var name: String? {
    get { core.withLock { $0.name } }
    set { core.withLock { $0.name = newValue } }
  }

  // MARK: For subclasses

  /// Starts the work. Call `finish` once when the work is done, inside this method or later, on any thread.
  ///
  /// Called at most once, on the thread that starts the operation. Not called if the operation was cancelled or
  /// finished before. It may still be called if another thread finishes the operation in the instant in which it is
  /// started. Do not call super. The default implementation finishes the operation at once.
  open func execute() { finish() }

  /// Stops the work, because the operation was cancelled while it was executing. Call `finish` when the work has
  /// stopped.
  ///
  /// Called at most once, on the cancelling thread, at any moment between the beginning and the end of execution. The
  /// default implementation does nothing, so the work continues to its end.
  open func didCancel() {}

  /// Responds to the end of the operation.
  ///
  /// Called once, on the finishing thread, after `isFinished` is true and before the observers are notified.
  open func didFinish() {}

  /// Does nothing. The work starts in ``execute()``. Final, so that the compiler rejects an override.
  public final override func main() {}

  // MARK: Starting

  /// Starts the operation by hand. An `OperationQueue` starts its operations itself.
  ///
  /// - Precondition: The operation is ready, is not executing, and is not a member of a group.
  public final override func start() {
    switch begin(by: .anyone) {
    case .begun, .isGone, .needsPermit: return
    case .awaitGate:
      // Another thread has counted the last dependency and is notifying Foundation. An operation in a queue need not
      // wait once Foundation reports it ready. Outside of a queue, a third thread may be about to give Foundation the
      // gate.
      if core.withLock({ $0.queue != nil }), super.isReady {
        _ = begin(by: .queue)
        return
      }
      awaitGate()
    case .notReady:
      if beginsThoughNotReady() { return }
    }
    start()
  }

  /// Finishes the operation without executing it. A group first drains its members.
  func finishUnexecuted() { finishNow() }

  // MARK: Finishing

  /// Finishes the operation. The first call counts; later calls are ignored.
  ///
  /// May be called on any thread, inside ``execute()`` or long after it, so `return finish()` is valid. A call before
  /// the start is kept: the operation then finishes without executing when it is started.
  public final func finish() { complete(with: []) }

  /// Finishes the operation with an error.
  ///
  /// After a cancellation, an error that only reports the cancellation is not a failure: `CancellationError`,
  /// `URLError.cancelled`, `CocoaError.userCancelled`, `POSIXError.ECANCELED`, and an ``AggregateError`` that contains
  /// only such errors. The failures of an ``AggregateError`` become failures of this operation.
  public final func finish(with error: any Error) { complete(with: [error]) }

  /// Finishes the operation with several errors, or without an error if `errors` is empty.
  public final func finish(withErrors errors: [any Error]) { complete(with: errors) }

  func complete(with errors: [any Error]) {
    let report = errors.isEmpty ? nil : FailureReport(errors)
    carryOut(core.withLock { $0.finish(report) })
  }

  final func finishNow() {
    let (hasExecuted, trace) = core.withLock { ($0.lifecycle.end() ? $0.lifecycle.hasExecuted : nil, $0.trace) }
    if let hasExecuted { completeFinish(afterExecution: hasExecuted, trace) }
  }

  /// Releases a closure that will not be called any more.
  func releaseWork() {}

  /// Prepares the end, just before `isFinished` turns true. Override it for what must be true before other threads can
  /// see the end.
  func prepareToFinish() {}

  /// A block that Foundation calls, on a thread of its own, when the operation has finished.
  ///
  /// It is cleared then, so a block that refers to the operation causes no leak.
  public final override var completionBlock: (@Sendable () -> Void)? {
    get { super.completionBlock }
    set {
      core.withLock { $0.hasCompletionBlock = true }
      super.completionBlock = newValue
      // The operation has finished, so the block will neither be called nor be cleared by the end.
      if core.withLock({ $0.lifecycle.phase == .finished }) { super.completionBlock = nil }
    }
  }

  // MARK: Cancelling

  /// Cancels the operation: sets the flag, and notifies the observers and ``didCancel()``, once.
  ///
  /// An executing operation continues until it finishes. An operation that has not started will not execute. It
  /// becomes ready at once, whatever its dependencies, so that its queue can finish it. Cancelling a finished
  /// operation has no effect.
  public final override func cancel() { cancel(.none) }

  /// Cancels the operation and records the reason. ``errors`` contains the error, and `run` throws it.
  ///
  /// The first cancellation counts: an operation that has been cancelled keeps its reason, or its lack of one.
  public final func cancel(with error: any Error) { cancel(because: error) }

  /// Returns the members that inherit the cancellation, once. Only a group has members.
  func takeMembersToCancel() -> [Operation] { [] }

  /// Responds after all members have been cancelled.
  func membersWereCancelled() {}

  /// Whether the operation itself starts the time of its timeout.
  var startsDeadlineItself: Bool { false }

  /// Whether the operation was requested to finish and is still executing. Only a group can be.
  var isFinishRequested: Bool { false }

  /// Whether operations of this type always call `finish`.
  var finishesByItself: Bool { false }

  /// Whether operations of this type run other operations inside them.
  var runsOthersInside: Bool { false }

  /// Whether the operation is a group, whose failures are those of its members.
  var isGroup: Bool { false }

  /// The operations that run inside this one: the members of a group, or the inner operation of another operation.
  var members: [Operation] { core.withLock { $0.extras?.inner }.map { [$0] } ?? [] }

  /// The number of ``members``.
  var memberCount: Int { core.withLock { $0.extras?.inner == nil ? 0 : 1 } }

  // MARK: Progress

  /// The progress of the operation, for work that counts its own units.
  ///
  /// ```swift
  /// progress.totalUnitCount = Int64(pages.count)
  /// for page in pages {
  ///   store(page)
  ///   progress.completedUnitCount += 1
  /// }
  /// ```
  ///
  /// The group around the operation weights it: see ``GroupOperation/progress`` and ``progressWeight``. A finished
  /// operation counts as complete, whatever it has reported. Cancelling the progress cancels the operation.
  ///
  /// Unlike Foundation's, it may be changed on any thread, even on Linux. A child that was added with `addChild`
  /// reaches the group when one of the two counts changes, and at the end.
  public var progress: Progress { ownProgress }

  /// Completes the progress, because nothing more will be reported.
  func endProgress() { core.withLock { $0.extras?.progress }?.end() }

  // MARK: Dependencies

  /// Whether all dependencies have finished. A cancelled operation is ready.
  ///
  /// The count in the ledger decides. Foundation gets a gate that opens when the count reaches zero. The gate is
  /// created when Foundation first checks readiness, and never in a group, because a group does not check.
  public final override var isReady: Bool {
    let readiness = core.withLock { core -> DependencyLedger.Readiness in
      if core.lifecycle.isCancelled || core.lifecycle.phase != .pending { return .leftToFoundation }
      return core.ledger.readiness(byOpener: isOpeningGate, byNudge: isNudging)
    }
    switch readiness {
    case .leftToFoundation: return super.isReady
    case .overlooked:
      // Not on this thread, where Foundation is in the middle of a check.
      DispatchQueue.global().async { [weak self] in self?.lookAgain() }
      return super.isReady
    case .waiting: return false
    case .waitingBehindNew(let gate):
      super.addDependency(gate)
      lookAgain()
      return core.withLock { $0.ledger.remaining == 0 || $0.lifecycle.isCancelled } && super.isReady
    }
  }

  /// Whether Foundation considers the operation ready. Reading ``isReady`` instead may give Foundation the gate.
  final var isReadyForFoundation: Bool { super.isReady }

  /// The dependencies, each listed once. Empty when the operation has finished.
  public final override var dependencies: [Operation] {
    let dependencies = core.withLock { $0.ledger.dependencies.entries }
    var seen: Set<ObjectIdentifier> = []
    return dependencies.map(\.operation).filter { seen.insert(ObjectIdentifier($0)).inserted }
  }

  /// Makes the operation wait for `operation`, which may be of any type and in any queue or group. The same as
  /// `operation ==> self`.
  ///
  /// - Precondition: The operation has not been started, and `operation` is another operation.
  public final override func addDependency(_ operation: Operation) {
    refuseSelfDependency(operation)
    if let own = operation as? AsyncOperation {
      addDependency(.own(own))
      let (isWaitedFor, seen) = own.core.withLock { $0.ledger.add(dependent: self) }
      withExtendedLifetime(seen) {}
      if !isWaitedFor { dependencyDidFinish() }
    } else {
      let relay = FinishRelay { [weak self] in self?.dependencyDidFinish() }
      addDependency(.foreign(operation, relay))
      relay.wait(for: [operation])
    }
  }

  /// Removes the dependency on `operation`, and the value that it would pass.
  ///
  /// On Linux, Foundation's own implementation leaves the operation waiting forever.
  public final override func removeDependency(_ operation: Operation) {
    let handOvers = core.withLock { $0.extras?.takeHandOvers(from: operation) }
    withExtendedLifetime(handOvers) {}
    var untold = 0
    if let own = operation as? AsyncOperation {
      let (count, seen) = own.core.withLock { $0.ledger.remove(dependent: self) }
      withExtendedLifetime(seen) { untold = count }
    }
    for relay in core.withLock({ $0.ledger.remove(operation) }) where relay.stop(waitingFor: [operation]) {
      untold += 1
    }
    dependencyDidFinish(count: untold)
  }
}
