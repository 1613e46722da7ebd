public import Foundation

/// Operations that run as one: it begins them when it starts, and finishes when the last of them has.
///
/// ```swift
/// let importer = GroupOperation("Import") { download ==> parse ==> store }
/// try await queue.run(importer)
/// ```
///
/// A member may be any Foundation operation, a group included, to any depth. Members start when what they wait for has
/// finished, inside the group or outside; among the ready ones those of higher `queuePriority` first, then in the order
/// they became ready. A group runs its members itself, in O(n + e) for n members with e dependencies, and never blocks
/// a thread: it is asynchronous, so a group in a queue of one holds that queue's slot, and its members run beside it.
///
/// - **Errors** of the members become the group's: see ``AsyncOperation/errors``, ``failures`` and ``ErrorPolicy``.
/// - **Cancelling** sets the group's own flag, then its members', then theirs. The group finishes when all of them
///   have; those that have not started finish unexecuted, also in a group that is cancelled before its start.
/// - **Members that wait for each other**, and those that depend on them, are cancelled with
///   ``OperationError/Code/dependencyCycle``, whose message names the cycle. What that means for the other members is up
///   to ``errorPolicy``. A group also waits for its members. A cycle is found when the group starts, when a member's new
///   dependency closes it, or, if it is a long one, when no member can run. One that is closed by a dependency added later
///   to an operation outside the group, or to a plain Foundation operation, is not found before that.
/// - **Plain Foundation members** behave as in an OperationQueue: one that is cancelled while it waits finishes at once,
///   and one that is not ready takes no slot. While it waits, its `dependencies` contain one operation more, named
///   “slot”, by which the group keeps it from starting. If a member overrides `isReady`, the group checks again, up to
///   64 ms after it turns true.
/// - **Nesting**: adding a group that contains groups costs O(d) if the group it is added to is d levels deep. Adding any
///   other operation does not depend on the depth.
/// - **Blocking** members take a thread each. The system adds threads slowly (on Linux about one a second), so let what
///   has to wait be asynchronous.
open class GroupOperation: AsyncOperation, @unchecked Sendable {
  /// What the failure of a member means for the others.
  public enum ErrorPolicy: Sendable {
    /// Nothing: the group goes on and collects the errors.
    case collect
    /// The others are cancelled, and so is whatever is added later. The group finishes when they have.
    case cancelOnFailure
    /// No further member starts, as with `make` without `-k`.
    ///
    /// Executing members run to their end, and so does a nested group that executes. Members that have not started, and
    /// members that are added later, are cancelled and finish without executing and without errors of their own.
    case stopOnFailure
  }

  let engine: GroupEngine

  /// A group of exactly these operations. What they wait for is not taken in.
  public init(_ operations: [Operation] = []) {
    engine = GroupEngine(accountsForAll: Self.self != GroupOperation.self)
    super.init()
    engine.belong(to: self)
    add(.init(operations: operations, mayRepeat: true))
  }

  /// A group of the operations between the braces, and of those they wait for: see ``OperationBuilder``.
  ///
  /// A subclass that is to be made this way has to say so again, for the compiler (as of Swift 6.3) does not hand the
  /// builder down with the initializer:
  ///
  /// ```swift
  /// override init(_ name: String? = nil, @OperationBuilder _ operations: () -> [Operation]) {
  ///   super.init(name, operations)
  /// }
  /// ```
  public init(_ name: String? = nil, @OperationBuilder _ operations: () -> [Operation]) {
    engine = GroupEngine(accountsForAll: Self.self != GroupOperation.self)
    super.init()
    engine.belong(to: self)
    self.name = name
    let named = operations()
    add(
      .init(
        operations: OperationWalk.withDependencies(named),
        named: Set(named.map { ObjectIdentifier($0) }),
        mayRepeat: true
      )
    )
  }

  deinit { Trampoline.release(engine.disband()) }

  // MARK: Members

  /// The members that have not finished, in the order they were added: all of them before the group starts.
  ///
  /// As in an OperationQueue, finished ones are let go (a few at a time), so that a group that is fed for long does not
  /// grow. Keep the ones whose results you want, or collect them in ``operation(_:didFinishWith:)``.
  public final var operations: [Operation] { engine.members }

  final override var runsOthersInside: Bool { true }

  final override var members: [Operation] { engine.members }

  final override var memberCount: Int { engine.memberCount }

  /// Adds a member: before the group starts, or while it runs, from any thread, a member's `execute` included.
  ///
  /// In a group that is being cancelled, or has finished because of that, the newcomer is cancelled and finishes
  /// without executing. A group cannot finish while one of its members is executing, so that a member may always add
  /// another.
  ///
  /// - Precondition: The operation has not been started and is in no queue and no group; the group has not finished by
  ///   itself.
  public final func addOperation(_ operation: Operation) { addOperations([operation]) }

  /// Adds several members at once, which is cheaper than one by one.
  public final func addOperations(_ operations: [Operation]) { add(.init(operations: operations)) }

  /// Adds an operation, and whatever it waits for that is in no queue or group yet, as the braces do: a pipeline made
  /// of `map` and `pass`, say, of which only the end is at hand.
  public final func addGraph(endingIn last: Operation) {
    add(.init(operations: OperationWalk.withDependencies([last]), named: [], mayRepeat: true))
  }

  /// Adds an operation, unless it is in a queue or a group, or has been started.
  ///
  /// - Returns: Whether it is a member now, of a group that had none.
  final func addIfFree(_ operation: Operation) -> Bool {
    add(.init(operations: [operation], named: [], mayRepeat: true))
    return !operations.isEmpty
  }

  private func add(_ newcomers: GroupEngine.Newcomers) {
    guard let first = newcomers.operations.first else { return }
    if engine.add(newcomers, to: self) == .refused {
      misuse(
        "\(quotedName) has finished and takes no more members, \(first.quotedName) neither. Add them "
          + "before its last member finishes, or to a new group."
      )
    }
  }

  /// Traps if adding the group would nest it inside itself.
  ///
  /// Only a group with groups in it can be around another one, so that groups can be nested from outside in.
  final func refuse(enclosing outer: GroupOperation) {
    if self !== outer, !engine.hasHadGroups { return }
    var enclosing: AsyncOperation? = outer
    while let group = enclosing {
      if group === self {
        misuse("\(quotedName) cannot be a member of itself: it would wait for its own end. Add another group.")
      }
      enclosing = group.core.withLock { $0.supervisor }?.supervisedGroup
    }
  }

  // MARK: How they run

  /// How many members may execute at once. Negative, as in an OperationQueue, is no limit: the default.
  ///
  /// A change counts from the next member on. An asynchronous member counts until it has finished.
  public final var maxConcurrentOperationCount: Int {
    get { engine.limit }
    set {
      if newValue < 0, newValue != OperationQueue.defaultMaxConcurrentOperationCount {
        misuse(
          "\(quotedName) cannot run \(newValue) members at once. Set a number from 0 up, or "
            + "OperationQueue.defaultMaxConcurrentOperationCount for no limit."
        )
      }
      engine.limit = newValue
    }
  }

  /// A suspended group starts no more members; those that execute go on, and when they were the last, the group
  /// finishes.
  ///
  /// A group that starts suspended and without members stays open until the first one, or until it is resumed. Cancelling
  /// a suspended group finishes it. See also ``staysOpen``.
  public final var isSuspended: Bool {
    get { engine.isSuspended }
    set { engine.isSuspended = newValue }
  }

  /// Whether members are only started to be finished, which neither a limit nor suspension delays.
  final var isWindingDown: Bool { engine.isWindingDown }

  /// Whether the group waits for more members when its last one has finished. False by default.
  ///
  /// A group that stays open is a queue that the program adds to for as long as it likes. It executes until one of these
  /// closes it, and its unfinished members have finished:
  ///
  /// - `staysOpen` is set to false, at any moment. A suspended group still runs its waiting members after it is resumed.
  /// - ``AsyncOperation/finish()`` or ``AsyncOperation/finish(with:)``.
  /// - `cancel()`, or the group's ``AsyncOperation/timeout``. The time begins when the first member does, or when the group
  ///   starts and no member can. It measures the group as a whole, so give a group that runs for long no timeout of its own.
  /// - The failure of a member under ``ErrorPolicy/cancelOnFailure`` or ``ErrorPolicy/stopOnFailure``.
  ///
  /// A group that has been closed accepts members until its last one has finished. What happens after that is described
  /// at ``addOperation(_:)``. Setting the property has no effect on a group that was closed in one of the other ways.
  ///
  /// Finished members are released, so an open group does not grow. Their errors are kept: to drop them, override
  /// ``operation(_:didFinishWith:)``.
  public final var staysOpen: Bool {
    get { engine.staysOpen }
    set { engine.staysOpen = newValue }
  }

  /// Waits until fewer than `count` members are unfinished, without blocking a thread.
  ///
  /// This is backpressure for a task that adds members faster than they finish:
  ///
  /// ```swift
  /// for url in urls {
  ///   await downloads.waitForRoom(below: 100)
  ///   downloads.addOperation(Download(url))
  /// }
  /// ```
  ///
  /// Returns immediately if the group has finished, or if the current task is cancelled. Members count before the group
  /// starts, and while they wait for dependencies. A member that waits for room in its own group is unfinished itself.
  ///
  /// Every waiting task resumes when there is room, so n tasks that each add one member after it can exceed the number by
  /// n - 1. A wait costs O(1), and so does a member that finishes, however many tasks wait.
  ///
  /// - Precondition: `count` is at least 1.
  public final func waitForRoom(below count: Int) async {
    if count < 1 {
      misuse("\(quotedName) cannot have fewer than \(count) unfinished members. Wait for room below 1 or more.")
    }
    await engine.waitForRoom(below: count, in: self)
  }

  /// What the failure of a member means for the others. ``ErrorPolicy/collect`` by default.
  public final var errorPolicy: ErrorPolicy {
    get { engine.errorPolicy }
    set { engine.errorPolicy = newValue }
  }

  /// How far the group has come: a unit a member, or its ``AsyncOperation/progressWeight``; those of a member that
  /// reports its own progress, and of a nested group, fill as that comes along. A member that has finished is done,
  /// whatever way it did.
  ///
  /// May be a child of another Progress, and have further children. Cancelling it cancels the group. Foundation's
  /// Progress cannot be observed on Linux, and reading it there while it changes is not synchronised: see
  /// ``progressUpdates``.
  public final override var progress: Progress {
    engine.sharedProgress(of: self)
  }

  /// How far the group has come, from 0 to 1, each time that changes: first what it is now, last the 1 of a group that
  /// has finished. Whoever is slow gets the newest. It goes back when members are added.
  ///
  /// ```swift
  /// for await fraction in group.progressUpdates { bar.show(fraction) }
  /// ```
  ///
  /// Each call makes a stream of its own, for one task.
  public final var progressUpdates: AsyncStream<Double> { engine.updates(for: self) }

  final override func endProgress() { engine.endProgress() }

  // MARK: What became of them

  /// The errors of the members and of nested groups' members, with the names that lead to them, and the group's own.
  ///
  /// In the order they happened; complete before `isFinished` turns true. ``AsyncOperation/errors`` are the same
  /// without the names.
  public final var failures: [OperationFailure] {
    let name = displayName
    return ownFailures.map { $0.below(name) }
  }

  /// A member has finished: translate its errors, or drop them, by returning others.
  ///
  /// Called once for every member, with no errors if it has succeeded, on the thread where it finished or another of
  /// its siblings did; never two calls at once. What is returned becomes the group's. The default returns `errors`.
  ///
  /// More members may be added here: the group does not finish before the call returns. In a cancelled group they finish
  /// without executing, and this is called for them, too. So a hook that adds a member at every call must check
  /// `isCancelled`; otherwise a cancelled group never finishes.
  open func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] { errors }

  final func account(for member: FinishedMember) {
    let operation = member.operation
    var failures = (operation as? AsyncOperation)?.ownFailures ?? []
    if let error = member.error { failures.append(OperationFailure(path: [], error: error)) }
    let kept = self.operation(operation, didFinishWith: failures.map(\.error))
    if !kept.isEmpty {
      record(OperationFailure.matching(kept, with: failures).map { $0.below(operation.displayName) })
      switch errorPolicy {
      case .collect: break
      case .stopOnFailure: engine.stopStarting()
      case .cancelOnFailure: engine.cancelMembers()
      }
    }
  }

  /// Gives a plain Foundation member, which has no errors of its own, one for when it has finished.
  final func note(_ error: any Error, ofPlain member: Operation) { engine.note(error, ofPlain: member) }

  private func record(_ failures: [OperationFailure]) {
    let report = FailureReport(failures: failures)
    core.withLock { _ = $0.lifecycle.record(report) }
  }

  // MARK: AsyncOperation

  /// Begins the members. A group's work is theirs; to do something at its start or end, add an observer or override
  /// ``AsyncOperation/didFinish()``.
  public final override func execute() { engine.begin(self, windingDown: false) }

  final override func skipExecution() { engine.begin(self, windingDown: true) }

  /// It was ended, by its timeout, when it was about to begin: its members have to be, too.
  final override func dropWork() { engine.begin(self, windingDown: true) }

  /// Its time begins when its first member does.
  final override var startsDeadlineItself: Bool { true }

  final override var isToldToFinish: Bool { engine.isFinishing }

  final override func willFinish() { engine.groupWillFinish() }

  final override func takeMembersToCancel() -> [Operation] { engine.takeMembersToCancel() }

  final override func membersWereCancelled() { engine.membersWereCancelled() }

  /// Adds errors of the group's own; it finishes when its members have.
  final override func complete(with errors: [any Error]) {
    record(errors.map { OperationFailure(path: [], error: $0) })
    engine.finishWithMembers()
  }
}
