public import Foundation

/// An operation whose work may go on after `execute()` has returned, on any thread, until it calls `finish`.
///
/// Subclass it, begin the work in ``execute()`` and call ``finish()`` when it is done:
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
/// It is a Foundation `Operation` and runs on any `OperationQueue`, in a ``GroupOperation``, or by `start()`.
///
/// What it promises:
/// - **It finishes once.** `finish` may come twice, from many threads, inside `execute`, or before the start, which
///   then honours it without executing. The first one counts.
/// - **Errors first.** ``errors`` are complete before `isFinished` turns true.
/// - **Cancelling** sets a flag and calls ``didCancel()``; an executing operation stays executing until it finishes,
///   and one that has not started never executes, but finishes when it is started.
/// - **It is let go.** When it has finished it forgets its dependencies, its observers and its `completionBlock`.
/// - **Any thread.** Every member may be called from every thread, `name` included.
///
/// There is no key-value observing in it: Foundation's own `start()` is called when the work has ended, and makes the
/// transition. `queue.progress` counts it for that reason, which it does not with the classic override of `isFinished`.
open class AsyncOperation: Operation, @unchecked Sendable {
  /// Where an operation is in its life.
  public enum State: Sendable {
    /// It has not executed, and not finished.
    case pending
    /// Its work has begun, and has not finished.
    case executing
    /// As `isFinished`: also without having executed, if it was cancelled.
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
    if let extras = extras.take() { AsyncOperation.letGo(of: consume extras) }
  }

  // MARK: State

  /// Where the operation is in its life at this moment; it may be further on when you look again.
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

  /// What went wrong, in the order it happened. Complete before `isFinished` turns true.
  public final var errors: [any Error] { ownFailures.map(\.error) }

  /// Finished, not cancelled, and without errors.
  public final var isSuccessful: Bool {
    guard isFinished else { return false }
    return core.withLock { !$0.lifecycle.isCancelled && $0.lifecycle.failures.isEmpty }
  }

  /// Whether the work has begun and not finished. Evaluating conditions is not executing yet.
  public final override var isExecuting: Bool { core.withLock { $0.lifecycle.phase == .executing } }

  /// Whether somebody has cancelled the operation before it finished. It stays so.
  public final override var isCancelled: Bool { core.withLock { $0.lifecycle.isCancelled } }

  /// Whether the operation is over: its errors and its value are complete.
  ///
  /// Foundation's own, and final, so that the override that a subclass with notifications had is found by the compiler.
  public final override var isFinished: Bool { super.isFinished }

  /// Always true: the work may outlast `start()`.
  public final override var isAsynchronous: Bool { true }

  /// The name, which may be set and read from any thread. Foundation's own may not.
  public final override var name: String? {
    get { core.withLock { $0.name } }
    set { core.withLock { $0.name = newValue } }
  }

  // MARK: For subclasses

  /// Begins the work. Call `finish` from any thread when it is done, once, here or later.
  ///
  /// Called once at most, on the thread that starts the operation; never if the operation was cancelled, or finished,
  /// before. (If another thread finishes it in the instant in which it is started, this may still be called.) Do not
  /// call super. The default finishes at once.
  open func execute() { finish() }

  /// The operation was cancelled while it was executing: stop the work, and call `finish` when it has stopped.
  ///
  /// Called once at most, on the cancelling thread, at any moment between the beginning and the end of execution. The
  /// default does nothing, which lets the work go on to its end.
  open func didCancel() {}

  /// The operation has finished.
  ///
  /// Called once, on the finishing thread, after `isFinished` is true and before the observers hear of it.
  open func didFinish() {}

  /// Never used: the work is begun in ``execute()``. Final, so that an override is found by the compiler.
  public final override func main() {}

  // MARK: Starting

  /// Starts the operation by hand. An OperationQueue does this for the operations in it.
  ///
  /// - Precondition: The operation is ready, is not executing, and is not the member of a group.
  public final override func start() {
    switch begin(by: .anyone) {
    case .begun, .isGone, .needsPermit: return
    case .awaitGate:
      // Another thread has counted the last dependency and is telling Foundation. If a queue has heard of it there is
      // nothing to wait for. Outside of one a third thread may only be about to tell Foundation that it has to wait.
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

  /// Ends the operation that is not to execute. A group winds its members down first.
  func skipExecution() { endIfNotEnded() }

  // MARK: Finishing

  /// The work is done. The first call counts, later ones are ignored.
  ///
  /// May be called from any thread, inside ``execute()`` or long after it, so `return finish()` reads well. Before the
  /// start it is kept: the operation then finishes without executing when it is started.
  public final func finish() { complete(with: []) }

  /// The work has failed.
  ///
  /// After a cancellation, an error that only says “cancelled” is no failure: `CancellationError`, `URLError.cancelled`,
  /// `CocoaError.userCancelled`, `POSIXError.ECANCELED`, and an ``AggregateError`` of nothing else. The failures of an
  /// ``AggregateError`` become failures of this operation.
  public final func finish(with error: any Error) { complete(with: [error]) }

  /// The work has failed in several ways, or, if `errors` is empty, is done.
  public final func finish(withErrors errors: [any Error]) { complete(with: errors) }

  func complete(with errors: [any Error]) {
    let report = errors.isEmpty ? nil : FailureReport(errors)
    carryOut(core.withLock { $0.finish(report) })
  }

  final func endIfNotEnded() {
    let (hasExecuted, trace) = core.withLock { ($0.lifecycle.end() ? $0.lifecycle.hasExecuted : nil, $0.trace) }
    if let hasExecuted { conclude(afterExecution: hasExecuted, trace) }
  }

  /// Lets go of a closure that will not be called any more.
  func dropWork() {}

  /// About to call the operation finished: for what has to be true before anybody can see that.
  func willFinish() {}

  /// Called by Foundation when the operation has finished, on a thread of its own. Cleared then, so that a block that
  /// refers to the operation is no leak.
  public final override var completionBlock: (@Sendable () -> Void)? {
    get { super.completionBlock }
    set {
      core.withLock { $0.hasCompletionBlock = true }
      super.completionBlock = newValue
      // Too late to be called, and to be cleared by the end.
      if core.withLock({ $0.lifecycle.phase == .finished }) { super.completionBlock = nil }
    }
  }

  // MARK: Cancelling

  /// Asks the operation to stop: sets the flag and tells the observers and ``didCancel()``, once.
  ///
  /// An executing operation goes on until it finishes. One that has not started will not execute; it is ready at once,
  /// whatever it waits for, so that its queue can finish it. A finished one is not cancelled any more.
  public final override func cancel() { cancel(.none) }

  /// Cancels the operation and records why. ``errors`` holds the error, and `run` throws it.
  ///
  /// The first cancellation counts: an operation that has been cancelled keeps its reason, or its lack of one.
  public final func cancel(with error: any Error) { cancel(because: error) }

  /// What the cancellation is passed on to, once. Only a group has members.
  func takeMembersToCancel() -> [Operation] { [] }

  /// The cancellation has been passed on.
  func membersWereCancelled() {}

  /// Whether the operation says itself when the time of its timeout begins.
  var startsDeadlineItself: Bool { false }

  /// Whether the operation has been told to finish, and is still executing. Only a group can be.
  var isToldToFinish: Bool { false }

  /// Whether it is of a kind that cannot forget to call `finish`.
  var finishesByItself: Bool { false }

  /// Whether it is of a kind that other operations may run inside of.
  var runsOthersInside: Bool { false }

  /// What runs inside this operation. Only a group has any.
  var members: [Operation] { core.withLock { $0.extras?.inner }.map { [$0] } ?? [] }

  /// How many there are.
  var memberCount: Int { core.withLock { $0.extras?.inner == nil ? 0 : 1 } }

  // MARK: Progress

  /// How far the work has come, for work that counts its own units.
  ///
  /// ```swift
  /// progress.totalUnitCount = Int64(pages.count)
  /// for page in pages {
  ///   store(page)
  ///   progress.completedUnitCount += 1
  /// }
  /// ```
  ///
  /// The group around the operation weighs it: see ``GroupOperation/progress`` and ``progressWeight``. An operation
  /// that has finished is done, whatever it has reported. Cancelling the progress cancels the operation. It may be
  /// changed on any thread, also on Linux, where Foundation's own may not. A child of it (`addChild`) reaches the group
  /// when one of the two counts changes, and at the end.
  public var progress: Progress { ownProgress }

  /// Nobody waits for what is still to be reported.
  func endProgress() { core.withLock { $0.extras?.progress }?.end() }

  // MARK: Dependencies

  /// Whether everything the operation waits for has finished. A cancelled operation is ready.
  ///
  /// The count in the ledger decides. Foundation gets a gate that wakes it up when the count is zero; it is made when
  /// Foundation asks for the first time, and not at all in a group, which never asks.
  public final override var isReady: Bool {
    let readiness = core.withLock { core -> DependencyLedger.Readiness in
      if core.lifecycle.isCancelled || core.lifecycle.phase != .pending { return .leftToFoundation }
      return core.ledger.readiness(byOpener: isOpeningGate, byNudge: isNudging)
    }
    switch readiness {
    case .leftToFoundation: return super.isReady
    case .overlooked:
      // Not here, where Foundation is in the middle of something.
      DispatchQueue.global().async { [weak self] in self?.lookAgain() }
      return super.isReady
    case .waiting: return false
    case .waitingBehindNew(let gate):
      super.addDependency(gate)
      lookAgain()
      return core.withLock { $0.ledger.remaining == 0 || $0.lifecycle.isCancelled } && super.isReady
    }
  }

  /// Whether Foundation would start it. Asking ``isReady`` may tell Foundation something.
  final var isReadyForFoundation: Bool { super.isReady }

  /// What the operation waits for, each named once. Empty when it has finished.
  public final override var dependencies: [Operation] {
    let dependencies = core.withLock { $0.ledger.dependencies.entries }
    var seen: Set<ObjectIdentifier> = []
    return dependencies.map(\.operation).filter { seen.insert(ObjectIdentifier($0)).inserted }
  }

  /// Makes the operation wait for another, of any kind, in any queue or group. `other ==> self` says the same.
  ///
  /// - Precondition: The operation has not been started, and `operation` is another one.
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

  /// Stops waiting for `operation`, and for the value it was to pass. Foundation's own leaves the operation waiting for
  /// ever on Linux.
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
