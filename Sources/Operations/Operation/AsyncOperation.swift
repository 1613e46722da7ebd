public import Foundation

/// A Foundation `Operation` whose work can continue after `execute()` has returned, until a call to `finish`.
///
/// Subclass `AsyncOperation`, start the work in ``execute()``, and call ``finish()`` when the work is done:
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
/// An `AsyncOperation` runs in any `OperationQueue`, in a ``GroupOperation``, or through `start()`.
///
/// ## Finishing
///
/// An operation finishes once: the first call to `finish` counts. ``errors`` are complete before `isFinished` turns
/// true. A finished operation releases its dependencies, its observers and its `completionBlock`.
///
/// ## Cancellation
///
/// Cancelling sets a flag and, if the operation is executing, calls ``didCancel()``. An executing operation continues
/// until it finishes, unless ``finishesWhenCancelled`` is true. An operation that has not started never executes, and
/// finishes when it is started.
///
/// ## Threads
///
/// All methods and properties can be used on any thread, including `name`.
///
/// ## Key-value observing
///
/// The operation sends no key-value notifications itself. When the work has ended, the operation calls Foundation's own
/// `start()`, which makes the transition to finished. `queue.progress` counts the operation if its
/// `totalUnitCount` has been set, as Foundation requires, and the operation was not cancelled while it executed.
open class AsyncOperation: Operation, @unchecked Sendable {
  /// The state of an operation.
  public enum State: Sendable {
    /// The operation has neither executed nor finished.
    case pending
    /// The work has begun and has not finished.
    case executing
    /// The operation has finished. A cancelled operation may have finished without executing.
    case finished
  }

  let core: Locked<OperationCore>

  public override init() {
    core = Locked(OperationCore())
    super.init()
  }

  deinit {
    guard var end = core.withLock({ $0.isClosed ? nil : $0.close() }) else { return }
    (end.work as? KeyRequest)?.leave(forGood: true)
    AsyncOperation.release(exchange(&end.dependencies, with: []))
    AsyncOperation.release(end.extras)
  }

  // MARK: State

  /// The current state of the operation. It may have changed by the time the caller uses it.
  public final var state: State {
    let lifecycle = core.withLock { $0.lifecycle }
    switch lifecycle.phase {
    case .pending, .suspended, .preparing, .skipped: return .pending
    case .executing, .paused: return .executing
    case .ending(let isAfterExecution): return isFinished ? .finished : isAfterExecution ? .executing : .pending
    case .finished: return .finished
    }
  }

  /// The errors of the operation, in the order they occurred. Complete before `isFinished` turns true.
  public final var errors: [any Error] { ownFailures.map(\.error) }

  /// Whether the operation has finished without errors and was not cancelled. True for a group whose members were all
  /// cancelled one by one, without errors.
  public final var isSuccessful: Bool {
    guard isFinished else { return false }
    return core.withLock { !$0.lifecycle.isCancelled && !$0.lifecycle.hasFailed }
  }

  /// Whether the work has begun and has not finished. False while conditions are evaluated.
  public final override var isExecuting: Bool { core.withLock { $0.lifecycle.phase.isExecuting } }

  /// Whether the operation was cancelled before it finished. Once true, it stays true.
  public final override var isCancelled: Bool { core.withLock { $0.lifecycle.isCancelled } }

  /// Whether the operation has finished, and its errors and its value are complete.
  ///
  /// The implementation is Foundation's, except that an operation can expire before its queue starts it. The property is
  /// final, so that no subclass overrides it to send key-value notifications.
  public final override var isFinished: Bool { super.isFinished || core.withLock { $0.hasExpired } }

  /// Always true, because the work may outlast `start()`.
  public final override var isAsynchronous: Bool { true }

  /// The name. Unlike Foundation's property, this one can be read and written on any thread.
  public final override var name: String? {
    get { core.withLock { $0.name } }
    set { core.withLock { $0.name = newValue } }
  }

  /// The priority among the ready operations of a queue or a group, and among all operations that wait for a key.
  ///
  /// A change counts even while the operation waits for a key or for a slot of a group. Within a priority,
  /// operations start in the order in which they arrived, even after a change.
  open override var queuePriority: Operation.QueuePriority {
    get { super.queuePriority }
    set {
      if newValue == super.queuePriority { return }
      super.queuePriority = newValue
      let (wait, engine, keys) = core.withLock { ($0.lifecycle.phase.wait, $0.engine, $0.keys) }
      if wait == .slot { engine?.moveMember(self, keys) }
      keys?.priorityDidChange(to: newValue, lent: core.withLock { $0.lent })
    }
  }

  /// The flow of the operation, such as the tenant or the document that it works for. Nil by default.
  ///
  /// ```swift
  /// report.flow = "tenant \(tenant.id)"
  /// ```
  ///
  /// In a group, flows take turns, so that one with many operations does not delay the others: see ``GroupOperation``.
  /// Operations without a flow are one flow. In an `OperationQueue`, a flow has no effect.
  ///
  /// - Precondition: The operation has not been added to a queue or a group, and has not been started.
  public final var flow: ExclusivityKey? {
    get { core.withLock { $0.extras?.flow } }
    set {
      if !isFree { misuse("\(quotedName) has been added or started already. Set the flow before, or make a new one.") }
      _ = core.withLock { exchange(&$0.makeExtras().flow, with: newValue) }
    }
  }

  // MARK: For subclasses

  /// Starts the work. Call `finish` once when the work is done, inside this method or later, on any thread.
  ///
  /// Called at most once, on the thread that starts the operation. Not called if the operation was cancelled or
  /// finished before. May still be called if another thread finishes the operation while it starts. Do not call super.
  /// The default implementation finishes the operation at once.
  open func execute() { finish() }

  /// Stops the work, because the operation was cancelled while executing. Call `finish` when the work has stopped.
  ///
  /// Called at most once, on the cancelling thread, at any moment of the execution. If another thread finishes the
  /// operation at that moment, `isFinished` may already be true. By default, does nothing, so that the work continues.
  open func didCancel() {}

  /// Responds to the end of the operation.
  ///
  /// Called once, on the finishing thread, after `isFinished` is true and before the observers are notified.
  open func didFinish() {}

  /// Does nothing. The work starts in ``execute()``.
  @available(*, unavailable, message: "Override execute() instead")
  public override func main() {}

  // MARK: Starting

  /// Starts the operation by hand. An `OperationQueue` starts its operations itself.
  ///
  /// - Precondition: The operation is ready, is not executing, and is not a member of a group.
  public final override func start() {
    while true {
      let (action, isBlocked, queue) = core.withLock { ($0.startUnlessWaiting(), $0.isBlocked, $0.queue) }
      if let action { return continueStart(action) }
      if isBlocked {
        if startUnready() { return }
      } else if queue != nil, super.isReady {
        // Another thread has counted the last dependency and is notifying Foundation. An operation in a queue can start
        // once Foundation reports it ready. Any other one waits, because a third thread may be about to add the gate.
        return continueStart(core.withLock { $0.start() })
      } else {
        awaitGate()
      }
    }
  }

  /// A group first drains its members.
  func finishUnexecuted() { finishNow() }

  /// Finishes a cancelled operation, even if its work or its members continue.
  func finishBeforeMembers() { finishNow() }

  // MARK: Finishing

  /// Finishes the operation. The first call counts; later calls are ignored.
  ///
  /// Can be called on any thread, inside ``execute()`` or later. Finish last: the next operation of a queue or group with
  /// a limit of 1 may start before this method returns. After a call before the start, the operation finishes without
  /// executing when it is started.
  public final func finish() { requestFinish(with: []) }

  /// Finishes the operation with an error.
  ///
  /// After a cancellation, an error that only reports the cancellation is not a failure: `CancellationError`,
  /// `URLError.cancelled`, `CocoaError.userCancelled`, `POSIXError.ECANCELED`, and an ``AggregateError`` that contains
  /// only such errors. The failures of an ``AggregateError`` become failures of this operation.
  public final func finish(with error: any Error) { requestFinish(with: [error]) }

  /// Finishes the operation with several errors, or without an error if `errors` is empty.
  public final func finish(withErrors errors: [any Error]) { requestFinish(with: errors) }

  func requestFinish(with errors: [any Error]) { finish(reporting: errors.isEmpty ? nil : FailureReport(errors)) }

  /// Releases the work of an operation that was started and does not execute.
  func willNotExecute() {}

  /// Makes the changes that must be complete when `isFinished` turns true.
  func prepareToFinish() {}

  /// A block that Foundation calls, on a thread of its own and in no order with the observers, after the finish.
  ///
  /// Foundation's property is then cleared, so the block can refer to the operation without a leak.
  public final override var completionBlock: (@Sendable () -> Void)? {
    get { super.completionBlock }
    set {
      super.completionBlock = newValue
      // On Linux, Foundation would keep the block and its captures.
      if newValue != nil { whenFinished { [weak self] in self?.completionBlock = nil } }
    }
  }

  // MARK: Cancelling

  /// Cancels the operation.
  ///
  /// The first call notifies the observers and, if the operation is executing, calls ``didCancel()``. An executing
  /// operation continues until it finishes. An operation that has not started never executes. It becomes ready at once,
  /// whatever its dependencies, so that its queue can finish it. Cancelling a finished operation has no effect.
  public final override func cancel() { cancel(nil) }

  /// Cancels the operation, unless it was cancelled before. ``errors`` contains the error, and `run` throws it.
  public final func cancel(with error: any Error) { cancel(FailureReport([error])) }

  /// Whether the package calls `finish`, so that a stall report suggests no missing call.
  var finishesByItself: Bool { beginsElsewhere || runsOthersInside }

  /// Whether `execute()` only begins work elsewhere, and calls no code of the user.
  var beginsElsewhere: Bool { false }

  var runsOthersInside: Bool { false }

  var origin: EventOrigin? { nil }

  /// Whether a task receives the failures, so that they are none of the group.
  var throwsToItsCaller: Bool { false }

  final var engineOfMembers: GroupEngine? { (self as? GroupOperation)?.engine }

  /// The members of a group, or the inner operation of another operation.
  final var members: [AsyncOperation] {
    engineOfMembers?.members ?? core.withLock { $0.extras?.inner }.map { [$0] } ?? []
  }

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
  /// The group around the operation weights the progress: see ``GroupOperation/progress`` and ``progressWeight``. A
  /// finished operation counts as complete, whatever its unit counts. Cancelling the progress cancels the operation.
  ///
  /// Unlike Foundation's, this progress can be changed on any thread, even on Linux. A child that was added with
  /// `addChild` affects the group when `totalUnitCount` or `completedUnitCount` of this progress changes, and when the
  /// operation finishes.
  public var progress: Progress { ownProgress }

  // MARK: Dependencies

  /// Whether all dependencies have finished. A cancelled operation is ready.
  public final override var isReady: Bool {
    switch readiness {
    case .leftToFoundation: return super.isReady
    case .overlooked:
      // On another thread, because Foundation is in the middle of a check on this one.
      DispatchQueue.global().async { [weak self] in self?.recheckReadiness() }
      return super.isReady
    case .waiting(newGate: nil): return false
    case .waiting(let gate?):
      super.addDependency(gate)
      recheckReadiness()
      return core.withLock { !$0.isBlocked || $0.lifecycle.isCancelled } && super.isReady
    }
  }

  /// Whether Foundation considers the operation ready. Reading ``isReady`` instead may add the gate to Foundation.
  final var isReadyForFoundation: Bool { super.isReady }

  /// The dependencies, each listed once. Empty when the operation has finished.
  public final override var dependencies: [Operation] {
    let dependencies = core.withLock { $0.ledger.dependencies.entries }
    var seen: Set<ObjectIdentifier> = []
    return dependencies.map(\.operation).filter { seen.insert(ObjectIdentifier($0)).inserted }
  }

  /// Makes the operation wait for `operation`. The same as `operation ==> self`.
  ///
  /// `operation` can be of any type, and in any queue or group.
  ///
  /// - Precondition: The operation has not been started, and `operation` is another operation.
  public final override func addDependency(_ operation: Operation) {
    refuseSelfDependency(operation)
    if addDependencyIfPending(operation) { return }
    misuse(
      "\(quotedName) has been started and can no longer wait for \(operation.quotedName). Add dependencies before the "
        + "operation is added to a queue or a group."
    )
  }

  /// Removes the dependency on `operation`, which then passes no value.
  ///
  /// On Linux, Foundation's own implementation leaves the operation waiting forever.
  public final override func removeDependency(_ operation: Operation) {
    _ = core.withLock { $0.extras?.handOvers.remove(ObjectIdentifier(operation)) }
    var unsentNotifications = 0
    if let own = operation as? AsyncOperation {
      let removed = own.core.withLock { $0.ledger.remove(dependent: self) }
      unsentNotifications = removed.count { $0.operation === self }
    }
    for relay in core.withLock({ $0.ledger.remove(operation) }) where relay.stop() { unsentNotifications += 1 }
    dependencyDidFinish(count: unsentNotifications)
  }
}
