import Foundation

/// The state of an ``AsyncOperation``, guarded by its one lock.
@safe struct OperationCore {
  /// What starts the operation. Checked to trap with a message of the package when an operation is added twice.
  enum Place {
    case none
    /// Nil when the operation has ended. Until then, Foundation keeps the queue alive in any case.
    case queue(OperationQueue?)
    /// The operation ends without its queue, which lists it until it starts it, because Foundation requires a start.
    case expiring(OperationQueue?)
    case expired(OperationQueue?)
    case group(Membership)
    /// The operation is private, and runs inside this one until it ends.
    case inside(AsyncOperation)
  }

  @safe struct Membership {
    /// Nil when the operation has ended. Not counted, because a group that never starts would then be a retain cycle. A
    /// group that is released first removes the reference under the lock of the member.
    fileprivate var engine: Unmanaged<GroupEngine>?
    fileprivate(set) var runner: GroupRunner?
    fileprivate(set) var index = 0
    /// The number of its arrival among the members that wait for no more than a slot. Nil until it has used one.
    var number: Int?
  }

  struct End {
    var dependencies: [DependencyLedger.Dependency]
    let dependents: [WeakOperation]
    let waiters: NumberedList<Waiter>
    /// Holds the runner of a member, and what may be the last reference to a queue.
    let place: Place
    let turn: KeyRequest?
    let keylessWork: Work?
    let task: Task<Void, Never>?
    let extras: OperationExtras?
    fileprivate let gate: Operation?

    var membership: Membership? { if case .group(let membership) = place { membership } else { nil } }

    var ownsSlot: Bool { membership?.number != nil && extras?.pause == nil }
  }

  var lifecycle = OperationLifecycle()
  var bridge = FoundationBridge()
  var ledger = DependencyLedger()
  var observers: [OperationObserver] = []
  /// Called when the observers have been notified of the end.
  var waiters = NumberedList<Waiter>()
  /// Called when the gate is open. Each resumes a thread that starts the operation by hand.
  var gateWaiters: [Waiter] = []
  var name: String?
  /// Nil if the operation has no keys, or has ended.
  var turn: KeyRequest?
  /// Nil if the operation has keys, whose request is its work, if no task has worked for it, or when it has ended.
  var keylessWork: Work?
  /// Works for the operation. Cancelled with it, and at its end. Kept after that, because the work may continue.
  var task: Task<Void, Never>?
  /// When the operation was added, began to wait for its keys or a slot, was started, or proceeded to evaluating or executing.
  var since: CoarseTime?
  /// The highest priority of a task that waits for the operation, if it is above the default, or 0. Not a `TaskPriority`,
  /// because the program finds out the size of a structure with such a property when it runs.
  var lent: UInt8 = 0
  private(set) var extras: OperationExtras?
  private(set) var place = Place.none

  /// Whether the operation waits for no more than a slot, and Foundation has been notified.
  var isSatisfied: Bool { !isBlocked && !bridge.isOpening }

  var isBlocked: Bool { lifecycle.phase.isBlocked }

  /// Whether the observers have been notified of the end. The dependents and the waiters are notified from then on.
  var isSettled: Bool { ledger.isClosed }

  /// Whether the operation uses a slot. A member that pauses has given it back.
  var holdsSlot: Bool {
    if case .paused = lifecycle.phase { engine == nil } else { !lifecycle.phase.isPending }
  }

  /// Whether the start of a pending operation leads to `execute()`, and calls no code of the user before.
  var callsNoCodeAtStart: Bool {
    lifecycle.phase.isPending && !lifecycle.isEnded && extras?.hasInputs != true
      && observers.allSatisfy { $0.didStart == nil }
  }

  var trace: [OperationFollower] { extras?.trace ?? [] }

  var work: Work? { turn ?? keylessWork }

  mutating func makeWork() -> Work {
    if let work { return work }
    let new = Work()
    keylessWork = new
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
    case .queue(let queue), .expiring(let queue), .expired(let queue): queue
    case .none, .group, .inside: nil
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

  /// Claims the operation for a queue. Otherwise returns the reason why it cannot be added.
  mutating func claim(for queue: OperationQueue?) -> String? {
    if let obstacle { return obstacle }
    place = .queue(queue)
    since = .now
    return nil
  }

  /// Claims the operation for a group, whose engine is notified later unless the operation is ready now.
  mutating func claim(for engine: GroupEngine, index: Int) -> ClaimAction {
    if self.engine === engine { return .repeated }
    if let obstacle { return .refused(because: obstacle) }
    since = .now
    var claim: Claim = mustWait ? [.waits] : []
    if turn != nil, !lifecycle.isCancelled {
      claim.insert(.needsTurn)
      lifecycle.wait(for: .groupStart)
    }
    unsafe place = .group(Membership(engine: .passUnretained(engine), index: index))
    if let extras, extras.progressWeight != 1 || extras.progress != nil { claim.insert(.hasWeight) }
    if extras?.flow != nil { claim.insert(.hasFlow) }
    if lifecycle.isCancelled { claim.insert(.isCancelled) }
    if extras?.waitLimit != nil { claim.insert(.hasWaitLimit) }
    return .claimed(claim)
  }

  mutating func claim(inside outer: AsyncOperation) { place = .inside(outer) }

  /// Claims a free operation that depends on nothing, has no keys, and calls no code of the user before it executes.
  mutating func claimAlone(inside outer: AsyncOperation) -> Bool {
    guard obstacle == nil, turn == nil, isSatisfied, ledger.dependencies.isEmpty, callsNoCodeAtStart else {
      return false
    }
    claim(inside: outer)
    return true
  }

  private var obstacle: String? {
    if !lifecycle.phase.isPending { return "has been started" }
    switch place {
    case .none: return nil
    case .queue, .expiring, .expired: return "is in a queue"
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

  /// Releases the claim of a group that is being released.
  mutating func becomeFree() -> WaitAction {
    if lifecycle.phase.isPending { place = .none }
    unsafe membership?.engine = nil
    return groupDidStart(nil)
  }

  /// Returns what starts an operation that is cancelled in this phase, so that it finishes.
  func cancellationNotice(_ phase: OperationLifecycle.Phase) -> WaitAction {
    guard phase.isPending else { return .none }
    // A member with keys is in no list, because it has left them.
    let wasNotReady = phase.isBlocked || bridge.isOpening || turn != nil
    if case .inside = place { return wasNotReady ? .startInside : .none }
    return engine.map { .notifyOfCancellation($0, wasNotReady: wasNotReady) } ?? .none
  }

  // MARK: Start and end

  mutating func start() -> StartAction {
    if let step = begin(holdingKeys: turn == nil) { return step }
    switch place {
    case .none, .queue, .group, .inside: return lifecycle.phase == .finished ? .ignore : .refuse
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
    if case .expiring(let queue) = place { place = .expired(queue) }
    return hasExpired
  }

  mutating func startByHand() -> StartAction {
    guard lifecycle.phase.isPending else { return start() }
    if case .group = place { return .isMember }
    guard mustWait else { return start() }
    return isBlocked ? .notReady : .awaitGate
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
    if turn != nil, !hasSlot, !isPending || !lifecycle.isEnded { return .ignore }
    membership?.runner = runner
    if let number { membership?.number = number }
    if isPending { return begin(holdingKeys: true) ?? .ignore }
    if case .resume(let pause) = resumeAfterPause(of: .slot) { return .resume(pause) }
    return .ignore
  }

  /// Nil if the operation has been started before.
  private mutating func begin(holdingKeys: Bool) -> StartAction? {
    let first: OperationLifecycle.Phase = extras?.hasInputs == true ? .preparing : .executing
    guard lifecycle.start(as: holdingKeys ? first : .suspended(.turn)) else { return nil }
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
    case .suspended: turn.map { .takeTurn($0) } ?? .ignore
    case .preparing: .prepare
    case .executing: .execute(observers, hasTimeout: extras?.timeout != nil, trace)
    case .skipped: .skip
    case .pending, .paused, .ending, .finished: .ignore
    }
  }

  /// Records that the operation is finished for Foundation. Settles it, if it is for no observer, key or group.
  mutating func complete() -> End? {
    lifecycle.complete()
    return observers.isEmpty && turn == nil && engineToProcess == nil ? settle() : nil
  }

  mutating func settle() -> End {
    let former = extras
    extras = former?.remainder
    defer {
      (waiters, turn, keylessWork) = (NumberedList(), nil, nil)
      switch place {
      case .none: break
      case .inside: place = .none
      case .queue, .expiring: place = .queue(nil)
      case .expired: place = .expired(nil)
      case .group: place = .group(Membership())
      }
    }
    return End(
      dependencies: ledger.takeDependencies(),
      dependents: ledger.close(),
      waiters: waiters,
      place: place,
      turn: turn,
      keylessWork: keylessWork,
      task: task,
      extras: former,
      gate: bridge.close()
    )
  }
}
