public import Foundation

/// An operation that runs a set of operations as one.
///
/// ```swift
/// let importer = GroupOperation("Import") { download ==> parse ==> store }
/// try await queue.run(importer)
/// ```
///
/// A group starts its members when it starts, and finishes when the last member has finished. Any Foundation
/// operation can be a member, including another group, to any depth. The errors of the members become the group's:
/// see ``AsyncOperation/errors``, ``failures`` and ``ErrorPolicy``.
///
/// ## Order
///
/// A member arrives when all of its dependencies have finished, inside or outside the group. The first member that fits
/// starts next, by `queuePriority`, then by arrival. A member with keys fits if it comes first in the wait queues of
/// the keys, which admit it, and takes the keys and a slot of the group in one step: see <doc:MutualExclusion>. Running
/// n members with e dependencies costs O(n + e).
///
/// Among ready members of the same priority, flows take turns: the next member belongs to the flow with the fewest
/// executing members, and among those to the flow that was served longest ago. Within a flow, members start in order
/// of arrival. One flow alone may use every slot. A member with keys counts in its flow while it executes, but waits in
/// order of arrival. Flows add O(log n) per member: see ``AsyncOperation/flow``.
///
/// ## Threads
///
/// A group is asynchronous and never blocks a thread. In a serial queue it occupies the queue's slot, and its members
/// run alongside it. Members that block occupy one thread each, and the system adds threads slowly (about one per
/// second on Linux), so make waiting members asynchronous.
///
/// ## Cancellation
///
/// Cancelling a group cancels the group itself, then its members, at any depth. The group finishes when all members
/// have finished. Members that have not started finish without executing, even if the group is cancelled before it
/// starts. In a running group, even if suspended, a waiting member that is cancelled finishes at once, without a slot.
///
/// ## Cycles
///
/// Members that wait for each other, and members that depend on them, are cancelled with
/// ``OperationError/Code/dependencyCycle``, whose message names the cycle. The ``errorPolicy`` determines what
/// happens to the other members. A cycle can also lead through the group, because a group waits for its members.
///
/// A cycle is usually detected 20 milliseconds after it was closed, while other members run. If a member waits for a
/// slot, a key or a task on the way, the code is ``OperationError/Code/waitCycle``: see <doc:DebuggingStalls>.
///
/// ## Foundation operations
///
/// The group runs a plain Foundation member by an internal ``AsyncOperation`` that starts it. The group reads the
/// dependencies, the priority and the cancellation of a plain member when the member is added, when the group starts and
/// before the member starts. Three rules follow:
///
/// - A plain member that the group or a policy cancels, or ``OperationContainer/cancelOperations(named:)``, finishes at once. The member's
///   own `cancel()` takes effect when the member would start.
/// - A change of its `queuePriority` while it is ready counts only if the priority is lowered.
/// - A member that overrides `isReady` and is not ready when its dependencies have finished waits in a private
///   `OperationQueue`, and occupies a slot of the group meanwhile.
///
/// ## Nesting
///
/// Adding a group that contains groups costs O(d), where d is the nesting depth of the group that it is added to. The
/// cost of adding any other operation does not depend on the depth.
open class GroupOperation: AsyncOperation, @unchecked Sendable {
  /// The effect of a member's failure on the other members.
  public enum ErrorPolicy: Sendable {
    /// No effect: the group continues and collects the errors.
    case collect
    /// The other members are cancelled, including later ones. The group finishes when they have finished.
    case cancelOnFailure
    /// No further member starts, as with `make` without `-k`.
    ///
    /// Executing members run to their end, including an executing nested group. Members that have not started, and
    /// members that are added later, are cancelled and finish without executing and without errors of their own.
    case stopOnFailure
    /// The members that depend on a failed or cancelled member, directly or through other members, are cancelled. All
    /// others run, as with `make -k`.
    ///
    /// The cancelled members finish without executing and without errors of their own. This includes members and
    /// dependencies that are added after the failure. A member is not failed if the group drops its errors: see
    /// ``GroupOperation/operation(_:didFinishWith:)``. An ``AsyncOperation`` that depends on a cancelled plain Foundation
    /// member runs, because that one does not know its dependents. The cost is O(d) for d dependents.
    case cancelDependents
  }

  let engine: GroupEngine

  /// Creates a group of exactly these operations, without their dependencies.
  public init(_ operations: [Operation] = []) {
    engine = GroupEngine(collectsAll: Self.self != GroupOperation.self)
    super.init()
    engine.owner = self
    engine.add(operations, skipping: .repetitions, to: self)
  }

  /// Creates a group of the operations in the result builder and of their dependencies: see ``OperationBuilder``.
  ///
  /// A subclass that is created with a result builder must declare this initializer again, because the compiler (as of
  /// Swift 6.3) inherits the initializer without the result builder:
  ///
  /// ```swift
  /// override init(_ name: String? = nil, @OperationBuilder _ operations: () -> [Operation]) {
  ///   super.init(name, operations)
  /// }
  /// ```
  public init(_ name: String? = nil, @OperationBuilder _ operations: () -> [Operation]) {
    engine = GroupEngine(collectsAll: Self.self != GroupOperation.self)
    super.init()
    engine.owner = self
    self.name = name
    let (named, joined, groups) = DependencyRecorder.recording(for: self, operations)
    let onlyNamed = Set(named.map { ObjectIdentifier($0) }).subtracting(joined.map { ObjectIdentifier($0) })
    let taken = OperationBuilder.takeBack(named + joined, from: groups)
    let all = OperationBuilder.withDependencies(named, joined: joined + taken)
    engine.add(all, skipping: .unnamed(except: onlyNamed), to: self)
  }

  deinit { Trampoline.release(engine.disband()) }

  // MARK: Members

  /// The unfinished members, in the order in which they were added. Before the group starts, these are all members.
  ///
  /// As in an `OperationQueue`, finished members are released (a few at a time), so that a long-running group does
  /// not grow. Keep the operations whose results are needed, or collect the results in
  /// ``operation(_:didFinishWith:)``.
  public final var operations: [Operation] { engine.members.map(\.represented) }

  final override var runsOthersInside: Bool { true }

  /// Adds a member, before the group starts or while it runs.
  ///
  /// Call this method on any thread, even from the `execute()` of a member. Unless the group times out, it finishes
  /// only after its executing members, so a member can always add another member.
  ///
  /// If the group has been cancelled or has finished, the operation is cancelled and finishes without executing: without
  /// an error if the group was cancelled, otherwise with ``OperationError/Code/shutDown``.
  ///
  /// - Precondition: The operation has not been started, is in no queue or group, and does not contain this group.
  public final func addOperation(_ operation: Operation) { addOperations([operation]) }

  /// Adds several members in one step, which costs less than adding them one by one.
  ///
  /// None of them starts before all of them have been added, so a failure among them affects all of them.
  public final func addOperations(_ operations: [Operation]) { engine.add(operations, skipping: .none, to: self) }

  /// Adds an operation and its dependencies that are in no queue or group.
  ///
  /// A plain Foundation dependency must not be in a queue, because it does not report whether it is.
  ///
  /// Use it for a pipeline made of `map` and `pass`, for example, where the caller holds only the last operation.
  public final func addGraph(endingIn last: Operation) {
    engine.add(OperationBuilder.withDependencies([last], joined: nil), skipping: .unnamed(except: []), to: self)
  }

  /// Adds an observer to every member that is added from now on, to this group or to a group inside it, at any depth.
  ///
  /// The members of a group that is added later are observed as well. Plain Foundation members and the attempts of a retry
  /// are not. Several observers are notified in the order in which they were added.
  public final func addObserver(toMembers observer: OperationObserver) {
    engine.addObservers([observer], toPresent: false)
  }

  // MARK: Running members

  /// The maximum number of members that execute at the same time. By default, there is no limit:
  /// `OperationQueue.defaultMaxConcurrentOperationCount`. Another negative value traps.
  ///
  /// A change applies to members that start later. An asynchronous member counts until it has finished, except while it
  /// backs off. A member that waits for its keys does not count.
  public final var maxConcurrentOperationCount: Int {
    get { engine.state.withLock { $0.schedule.limit } }
    set {
      if newValue < 0, newValue != OperationQueue.defaultMaxConcurrentOperationCount {
        let remedy = "Set a number from 0 up, or OperationQueue.defaultMaxConcurrentOperationCount for no limit."
        misuse("\(quotedName) cannot run \(newValue) members at once. " + remedy)
      }
      engine.change { $0.limit = newValue }
    }
  }

  /// Whether the group is suspended and starts no more members.
  ///
  /// Executing members continue. If they were the last members, the group finishes. Operations outside the group pass
  /// the members that wait for keys, which keep their places.
  ///
  /// A group that starts suspended and without members stays open until its first member is added, or until it is
  /// resumed. Cancelling a suspended group finishes it. See also ``staysOpen``.
  public final var isSuspended: Bool {
    get { engine.state.withLock { $0.schedule.isSuspended } }
    set { engine.change { $0.isSuspended = newValue } }
  }

  /// Whether the group waits for more members when its last member has finished. False by default.
  ///
  /// An open group is a queue to which the program can add members at any time. It finishes when it has been closed in
  /// one of these ways and its members have finished:
  ///
  /// - `staysOpen` is set to false. A suspended group still runs its waiting members after it is resumed.
  /// - ``AsyncOperation/finish()`` or ``AsyncOperation/finish(with:)``.
  /// - `cancel()`, or the group's ``AsyncOperation/timeout``. The time begins when the first member starts, or when
  ///   the group starts and no member can start. It covers the group as a whole, so set no timeout on a long-running
  ///   group.
  /// - The failure of a member under ``ErrorPolicy/cancelOnFailure`` or ``ErrorPolicy/stopOnFailure``.
  ///
  /// A closed group accepts members until its last member has finished: see ``addOperation(_:)``. Setting `staysOpen`
  /// does not reopen a group that was closed in another way.
  ///
  /// Finished members are released, so an open group does not grow. Their errors are kept. To drop errors, override
  /// ``operation(_:didFinishWith:)``.
  public final var staysOpen: Bool {
    get { engine.state.withLock { $0.schedule.staysOpen } }
    set { engine.change { $0.staysOpen = newValue } }
  }

  /// The effect of a member's failure on the other members. The default is ``ErrorPolicy/collect``.
  public final var errorPolicy: ErrorPolicy {
    get { engine.state.withLock { $0.errorPolicy } }
    set { engine.state.withLock { $0.errorPolicy = newValue } }
  }

  /// The progress of the group.
  ///
  /// Each member counts one unit, or its ``AsyncOperation/progressWeight``. The units of a nested group, and of a
  /// member that reports its own progress, are completed gradually. A finished member is always complete.
  ///
  /// The progress can be a child of another `Progress`, and can have further children. Cancelling it cancels the
  /// group. On Linux, Foundation's `Progress` cannot be observed, and reading it while it changes is not
  /// synchronized: see ``progressUpdates``.
  public final override var progress: Progress { engine.sharedProgress(of: self) }

  /// The completed fraction of the group's work, from 0 to 1, each time it changes.
  ///
  /// The first value is the current fraction, and the last value is 1, when the group has finished. A slow consumer
  /// receives only the latest value. The fraction decreases when members are added.
  ///
  /// ```swift
  /// for await fraction in group.progressUpdates { bar.show(fraction) }
  /// ```
  ///
  /// Each access returns a separate stream, for one task.
  public final var progressUpdates: AsyncStream<Double> { engine.updates(for: self) }

  // MARK: Results

  /// The errors of the group, its members, and the members of nested groups, with the names on the path to each.
  ///
  /// The errors are in the order in which they occurred, and are complete before `isFinished` becomes true.
  /// ``AsyncOperation/errors`` contains the same errors without the names.
  public final var failures: [OperationFailure] {
    let name = displayName
    return ownFailures.map { $0.below(name) }.markingConsequences()
  }

  /// Returns the errors that a finished member contributes to the group. Override it to translate or drop errors.
  ///
  /// The group calls this method once for every member that finishes before the group, with no errors if the member has
  /// succeeded. The group uses the thread on which the member or one of its siblings finished, and makes one call at a
  /// time. The returned errors become the errors of the group. The default implementation returns `errors`.
  ///
  /// What depends on the member, or waits for its slot or its keys, starts only after the call returns. An override can
  /// therefore suspend the group, and add the work again, before another member takes its place. A plain Foundation
  /// operation outside the group does not wait for the call.
  ///
  /// An override can add more members, because the group does not finish before the call returns. In a cancelled group
  /// the added members finish without executing, and the group calls this method for them as well. An override that
  /// adds a member in every call must therefore check `isCancelled`; otherwise a cancelled group never finishes.
  open func operation(_ member: Operation, didFinishWith errors: [any Error]) -> [any Error] { errors }

  final func collect(_ operation: AsyncOperation) {
    let isCancelled = operation.isCancelled
    let failures =
      operation.throwsToItsCaller ? [] : operation.ownFailures.filter { !isCancelled || !$0.isOfPolicy }
    let kept = Trampoline.isolate { self.operation(operation.represented, didFinishWith: failures.map(\.error)) }
    if !kept.isEmpty {
      let name = operation.displayName
      record(FailureReport(failures: OperationFailure.matching(kept, with: failures).map { $0.below(name) }))
    }
    switch errorPolicy {
    case .cancelDependents where !kept.isEmpty || operation.isCancelled: engine.cancelDependents(of: operation)
    case .stopOnFailure where !kept.isEmpty: engine.drain(by: .drain)
    case .cancelOnFailure where !kept.isEmpty: engine.drain(by: .cancel)
    case .collect, .cancelDependents, .stopOnFailure, .cancelOnFailure: break
    }
  }

  private func record(_ report: FailureReport) { core.withLock { $0.lifecycle.record(report) } }

  /// First adds the failures inside the groups that still execute.
  final override func finishBeforeMembers() {
    let inside = { (group: GroupOperation) in
      group.engine.members.compactMap { $0 as? GroupOperation }.filter(\.isExecuting).map { (group: $0, outer: group) }
    }
    let groups = postorder(from: inside(self), isNew: { _ in true }, next: { inside($0.group) })
    var failures: [ObjectIdentifier: [OperationFailure]] = [:]
    for (group, outer) in groups {
      let (name, inner) = (group.displayName, failures[ObjectIdentifier(group)] ?? [])
      failures[ObjectIdentifier(outer), default: []] += (group.ownFailures + inner).map { $0.below(name) }
    }
    record(FailureReport(failures: failures[ObjectIdentifier(self)] ?? []))
    finishNow()
  }

  // MARK: AsyncOperation

  /// Starts the members.
  ///
  /// To run code at the group's start or end, add an observer or override ``AsyncOperation/didFinish()``.
  public final override func execute() { engine.start(self, draining: false) }

  final override func finishUnexecuted() { engine.start(self, draining: true) }

  final override func willNotExecute() { engine.start(self, draining: true) }

  final override func prepareToFinish() {
    let group = engine.state.withLock { $0.schedule.abandon() }
    withExtendedLifetime(group) { engine.endProgress() }
  }

  final override var beginsElsewhere: Bool { engine.state.withLock { $0.startsAnywhere } }

  /// Adds errors to the group, which finishes when its members have finished.
  final override func complete(with errors: [any Error]) {
    record(FailureReport(errors))
    engine.change { $0.request(.finish) }
  }
}
