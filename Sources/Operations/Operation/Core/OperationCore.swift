import Foundation
import Synchronization

/// The state of an ``AsyncOperation``, guarded by its one lock.
@safe struct OperationCore {
  /// What starts the operation. Checked to trap with a message of the package when an operation is added twice.
  enum Place {
    case none
    case queue(OperationQueue)
    /// Ends before its queue starts it. Until that start, which Foundation requires, the queue lists the operation.
    case expiring(OperationQueue)
    case expired
    case group(Membership)
    /// The operation is private, and runs inside this one until it ends.
    case inside(AsyncOperation)
    /// The operation has ended, or cannot be added and is started only to finish.
    case over
  }

  @safe struct Membership {
    /// Not counted, because a group that never starts would then be a retain cycle. A group that is released first removes
    /// the reference under the lock of the member.
    fileprivate var engine: Unmanaged<GroupEngine>?
    /// Nil while the operation is pending.
    fileprivate(set) var runner: GroupRunner?
    fileprivate(set) var index = 0
    /// The ticket of its rank among the ready members. Nil if the member has not used a slot, or has keys.
    var number: Int?
  }

  struct End {
    var dependencies: [DependencyLedger.Dependency]
    let dependents: [WeakOperation]
    let waiters: NumberedList<Waiter>
    /// Holds the runner of a member, and what may be the last reference to a queue.
    let place: Place
    let work: Work?
    let task: Task<Void, Never>?
    let extras: OperationExtras?
    fileprivate let gate: Operation?

    var membership: Membership? { if case .group(let membership) = place { membership } else { nil } }

    /// Whether the member uses a slot that it took without keys. One that is taken with keys is returned with them.
    var ownsSlot: Bool { membership?.number != nil && extras?.pause == nil }
  }

  var lifecycle = OperationLifecycle()
  /// Has a meaning while the operation is pending.
  var bridge = FoundationBridge()
  var ledger = DependencyLedger()
  /// Empty when the operation has finished, and they have been notified.
  var observers: [OperationObserver] = []
  /// Called when the observers have been notified of the end, and empty from then on.
  var waiters = NumberedList<Waiter>()
  var name: String?
  /// The request for keys, if there are some, or if a task works for the operation or calls it. Nil when it has ended.
  var work: Work?
  /// Works for the operation, and is cancelled with it and at its end. Kept after that, because the work may continue.
  var task: Task<Void, Never>?
  /// When the operation was added, began to wait for its keys or a slot, was started, or proceeded to evaluating or executing.
  var since: CoarseTime?
  /// The highest priority of a task that waits for the operation, if it is above the default, or 0. Does not change when the
  /// operation is over. Not a `TaskPriority`, because the program finds out the size of a structure with such a property
  /// when it runs.
  var lent: UInt8 = 0
  private(set) var extras: OperationExtras?
  private(set) var place = Place.none

  /// Whether the operation waits for no more than a slot, and Foundation has been notified.
  var isSatisfied: Bool { !isBlocked && !bridge.isOpening }

  var isBlocked: Bool { lifecycle.phase.isBlocked }

  /// Whether the observers have been notified of the end. The dependents and the waiters are notified from then on.
  var isClosed: Bool { ledger.isClosed }

  /// Whether the operation uses a slot. A member that pauses has given it back.
  var holdsSlot: Bool {
    if case .paused = lifecycle.phase { engine == nil } else { !lifecycle.phase.isPending }
  }

  /// Whether the start of a pending operation leads to `execute()`, and calls no code of the user before.
  var callsNoCodeAtStart: Bool {
    lifecycle.phase.isPending && !lifecycle.isDecided && extras?.hasInputs != true
      && observers.allSatisfy { $0.didStart == nil }
  }

  var trace: [OperationFollower] { extras?.trace ?? [] }

  /// Nil if the operation has no keys, or has ended.
  var keys: KeyRequest? {
    // Each event reads the keys. A checked cast would call the runtime.
    guard let work, type(of: work) == KeyRequest.self else { return nil }
    return unsafe unsafeDowncast(work, to: KeyRequest.self)
  }

  mutating func makeWork() -> Work {
    if let work { return work }
    let new = Work()
    work = new
    return new
  }

  mutating func makeGateIfWaiting() -> Operation? { isBlocked ? bridge.makeGate() : nil }

  mutating func makeExtras() -> OperationExtras {
    if let extras { return extras }
    let new = OperationExtras()
    extras = new
    return new
  }

  // MARK: Places

  var isInside: Bool { if case .inside = place { true } else { false } }

  var queue: OperationQueue? {
    switch place {
    case .queue(let queue), .expiring(let queue): queue
    case .none, .expired, .group, .inside, .over: nil
    }
  }

  var hasExpired: Bool { if case .expired = place { true } else { false } }

  var membership: Membership? {
    get { if case .group(let membership) = place { membership } else { nil } }
    set { if let newValue { place = .group(newValue) } }
  }

  var engine: GroupEngine? { unsafe membership?.engine?.takeUnretainedValue() }
  var runner: GroupRunner? { membership?.runner }
  var memberIndex: Int { membership?.index ?? 0 }

  /// The group or the operation around this one, which the caller releases after the lock.
  var outer: AsyncOperation? { if case .inside(let outer) = place { outer } else { engine?.owner } }

  /// Takes the place in a queue or, if nil, for a start that only finishes it. Returns why it cannot be added, if so.
  mutating func takePlace(in queue: OperationQueue?) -> String? {
    if let obstacle { return obstacle }
    place = queue.map { .queue($0) } ?? .over
    since = .now
    return nil
  }

  /// Takes the place in a group, whose engine is notified later unless the operation is ready now.
  mutating func takePlace(in engine: GroupEngine, index: Int) -> PlaceAction {
    if self.engine === engine { return .repeated }
    if let obstacle { return .refused(because: obstacle) }
    since = .now
    var traits: MemberTraits = mustWait ? [.waits] : []
    if keys != nil, !lifecycle.isCancelled {
      traits.insert(.needsKeys)
      lifecycle.wait(for: .groupStart)
    }
    unsafe place = .group(Membership(engine: .passUnretained(engine), index: index))
    if let extras, extras.progressWeight != 1 || extras.progress != nil { traits.insert(.hasWeight) }
    if extras?.flow != nil { traits.insert(.hasFlow) }
    if lifecycle.isCancelled { traits.insert(.isCancelled) }
    if extras?.waitLimit != nil { traits.insert(.hasWaitLimit) }
    return .taken(traits)
  }

  mutating func takePlace(inside outer: AsyncOperation) { place = .inside(outer) }

  /// Takes the place inside `outer`, if the operation is free, has no dependencies or keys, and calls no user code first.
  mutating func takePlaceAlone(inside outer: AsyncOperation) -> Bool {
    guard obstacle == nil, keys == nil, isSatisfied, ledger.dependencies.isEmpty, callsNoCodeAtStart else {
      return false
    }
    takePlace(inside: outer)
    return true
  }

  private var obstacle: String? {
    if !lifecycle.phase.isPending { return "has been started" }
    switch place {
    case .none: return nil
    case .queue, .expiring, .expired, .over: return "is in a queue"
    case .group, .inside: return "is in a group"
    }
  }

  /// Returns those that depend on the operation now. Those that come later ask whether it has failed.
  mutating func fail() -> [AsyncOperation] {
    makeExtras().failedGroup = engine
    return ledger.dependents?.entries.compactMap(\.operation) ?? []
  }

  func hasFailed(in engine: GroupEngine) -> Bool { extras?.failedGroup === engine }

  /// The engine that processes the result before anything that waits for the operation starts.
  var engineToProcess: GroupEngine? {
    guard let engine = runner?.engine else { return nil }
    return engine.collectsAll || lifecycle.hasFailed || lifecycle.isCancelled ? engine : nil
  }

  private var mustWait: Bool { !isSatisfied && !lifecycle.isCancelled }

  /// Gives back the place in a group that is being released.
  mutating func becomeFree() -> WaitAction {
    if lifecycle.phase.isPending { place = .none }
    unsafe membership?.engine = nil
    return groupDidStart(nil)
  }

  /// Returns what starts an operation that is cancelled in this phase, so that it finishes.
  func cancellationNotice(_ phase: OperationLifecycle.Phase) -> WaitAction {
    guard phase.isPending else { return .none }
    // A member with keys is in no list, because it has left them.
    let wasNotReady = phase.isBlocked || bridge.isOpening || keys != nil
    if case .inside = place { return wasNotReady ? .startInside : .none }
    return engine.map { .notifyOfCancellation($0, wasNotReady: wasNotReady) } ?? .none
  }

  // MARK: Start and end

  mutating func start() -> StartAction {
    if let step = begin(needsKeys: keys != nil) { return step }
    switch place {
    case .none, .queue, .group, .inside, .over: return lifecycle.phase == .finished ? .ignore : .refuse
    case .expiring(let queue): place = .queue(queue)  // The end makes Foundation's transition, as after any start.
    case .expired: return .leaveQueue
    }
    return .ignore
  }

  /// Begins the end of a cancelled operation that its queue has not started. Returns false for any other operation.
  mutating func beginEarlyEnd() -> Bool {
    guard case .queue(let queue) = place, lifecycle.isCancelled, lifecycle.start() else { return false }
    place = .expiring(queue)
    return true
  }

  /// Returns whether the operation finishes now, although its queue has not started it.
  mutating func completeEarlyEnd() -> Bool {
    // Not the last reference, because the queue still lists the operation.
    if case .expiring = place { place = .expired }
    return hasExpired
  }

  /// Nil if the start, by a queue or a caller, must wait for dependencies, for keys, or for the gate.
  mutating func startUnlessWaiting() -> StartAction? {
    guard lifecycle.phase.isPending else { return start() }
    if case .group = place { return .isMember }
    return mustWait ? nil : start()
  }

  /// Starts or resumes a member, which has a slot and its keys, or was ended and needs none.
  mutating func start(by runner: GroupRunner?, number: Int? = nil, hasSlot: Bool) -> StartAction {
    let isPending = lifecycle.phase.isPending
    switch lifecycle.phase {
    case .pending: if mustWait { return .ignore }
    case .paused(.slot): break
    // It has been started, or has ended, in another way.
    case .suspended, .preparing, .executing, .paused, .skipped, .ending, .finished: return .ignore
    }
    if keys != nil, !hasSlot, !isPending || !lifecycle.isDecided { return .ignore }
    membership?.runner = runner
    if let number { membership?.number = number }
    if isPending { return begin(needsKeys: false) ?? .ignore }
    return endPause(after: .slot).map { .resume($0) } ?? .ignore
  }

  /// Nil if the operation has been started before.
  private mutating func begin(needsKeys: Bool) -> StartAction? {
    let first: OperationLifecycle.Phase = extras?.hasInputs == true ? .preparing : .executing
    guard lifecycle.start(as: needsKeys ? .suspended(.keys) : first) else { return nil }
    since = .now
    return nextStep
  }

  mutating func proceed(to phase: OperationLifecycle.Phase) -> Bool {
    guard lifecycle.proceed(to: phase) else { return false }
    since = .now
    return true
  }

  mutating func execute() -> StartAction {
    _ = proceed(to: .executing)
    return nextStep
  }

  private var nextStep: StartAction {
    switch lifecycle.phase {
    case .suspended:
      if let keys { .takeKeys(keys) } else { misuse("Only an operation with keys waits for them; this one has none.") }
    case .preparing: .prepare
    case .executing: .execute(observers, hasTimeout: extras?.timeout != nil, trace)
    case .skipped: .skip
    case .pending, .paused, .ending, .finished:
      misuse("A start leads to a wait, to the preparation, the execution or the end; it led to \(lifecycle.phase).")
    }
  }

  /// Records that Foundation has made its transition. If no observer, key or group comes first, also closes the operation.
  mutating func complete() -> End? {
    lifecycle.complete()
    return observers.isEmpty && keys == nil && engineToProcess == nil ? close() : nil
  }

  /// Ends what others know of the operation. The caller notifies them after the lock.
  mutating func close() -> End {
    let former = extras
    extras = former?.remainder
    let end = End(
      dependencies: ledger.takeDependencies(),
      dependents: ledger.close(),
      waiters: exchange(&waiters, with: NumberedList()),
      place: hasExpired ? .expired : exchange(&place, with: .over),
      work: work.take(),
      task: task,
      extras: former,
      gate: bridge.close()
    )
    // In the same step, so that a caller that finds the operation closed finds its slot.
    if end.ownsSlot { end.membership?.runner?.engine.returningSlots.wrappingAdd(1, ordering: .relaxed) }
    return end
  }
}
