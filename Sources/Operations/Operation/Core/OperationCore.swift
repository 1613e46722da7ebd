import Foundation

/// The state of an ``AsyncOperation``, guarded by its one lock.
@safe struct OperationCore {
  /// What starts the operation. Checked to trap with a message of the package when an operation is added twice.
  enum Place {
    case none
    /// Nil when the operation has ended. Until then, Foundation keeps the queue alive in any case.
    case queue(OperationQueue?)
    case group(Membership)
  }

  @safe struct Membership {
    /// The engine of the group. Nil when the operation has ended or the group has been released. Not counted, because
    /// the engine holds the members, which would form a cycle in a group that never starts. A group that is released
    /// first removes the reference under the lock of the member.
    fileprivate var supervisor: Unmanaged<OperationSupervisor>?
    fileprivate(set) var starter: OperationStarter?
    fileprivate(set) var index = 0
    /// Whether the supervisor has yet to be notified that the operation is ready.
    fileprivate var owesReadiness = false
  }

  enum StartAction {
    case execute([OperationObserver], hasTimeout: Bool, OperationTrace?)
    case prepare(StartPermit?, OperationSupervisor?)
    /// A paused operation has a slot again.
    case resume(OperationPause)
    case skip
    case ignore
    /// A programmer error: the operation has been started before.
    case refuse
    /// A programmer error: only the group may start its member.
    case isMember
    case notReady
    /// All dependencies have finished, but another thread may be about to notify Foundation.
    case awaitGate
    /// The operation was ended while it waited for a slot, and does not need the slot any more.
    case isGone
  }

  enum ClaimAction {
    /// `waits` for unfinished dependencies; `needsPermit` when its group starts.
    case claimed(waits: Bool, needsPermit: Bool, isAwaited: Bool, hasWeight: Bool, isCancelled: Bool)
    case refused(because: String)
    case repeated
  }

  typealias ReadinessNotice = (supervisor: OperationSupervisor, isReturning: Bool)

  /// What a request of the permit depends on.
  typealias PermitUpdate = (
    permit: StartPermit, state: DependencyLedger.Permit, supervisor: OperationSupervisor?, queue: OperationQueue?
  )

  struct End {
    var dependencies: [DependencyLedger.Dependency?]
    let dependents: [DependencyLedger.WeakDependent?]
    let waiters: [@Sendable () -> Void]
    /// Holds the starter of a member, and what may be the last reference to a queue.
    let place: Place
    let extras: OperationExtras?
    let lifecycle: OperationLifecycle

    var membership: Membership? { if case .group(let membership) = place { membership } else { nil } }
  }

  var lifecycle = OperationLifecycle()
  var bridge = FoundationBridge()
  var ledger = DependencyLedger()
  var observers: [OperationObserver] = []
  /// Called when the observers have been notified of the end.
  var waiters: [@Sendable () -> Void] = []
  /// Called when the gate is open. Each resumes a thread that starts the operation by hand.
  var gateWaiters: [@Sendable () -> Void] = []
  var name: String?
  private(set) var extras: OperationExtras?
  private(set) var place = Place.none
  /// The time when the operation was started, or when it last proceeded to evaluating or executing.
  private(set) var startTime = CoarseTime.never

  /// Whether all dependencies have finished, and Foundation has been notified.
  var isSatisfied: Bool { !ledger.isWaiting && !bridge.isOpening }

  /// Whether the observers have been notified of the end. The dependents and the waiters are notified from then on.
  var isSettled: Bool { ledger.isClosed }

  var holdsSlot: Bool { extras?.holdsSlot ?? true }

  var trace: OperationTrace? { extras?.trace }

  mutating func makeGateIfWaiting() -> Operation? { ledger.isWaiting ? bridge.makeGate() : nil }

  mutating func makeExtras() -> OperationExtras {
    if let extras { return extras }
    let new = OperationExtras()
    extras = new
    return new
  }

  /// Keeps the clock of the former group, unless the operation has its own.
  mutating func keep(_ clock: any Clock<Duration>) {
    if extras?.clock == nil { makeExtras().clock = clock }
  }

  // MARK: Places

  var queue: OperationQueue? { if case .queue(let queue) = place { queue } else { nil } }

  private(set) var membership: Membership? {
    get { if case .group(let membership) = place { membership } else { nil } }
    set { if let newValue { place = .group(newValue) } }
  }

  var supervisor: OperationSupervisor? { unsafe membership?.supervisor?.takeUnretainedValue() }
  var starter: OperationStarter? { membership?.starter }
  var memberIndex: Int { membership?.index ?? 0 }

  mutating func claim(for queue: OperationQueue?) -> ClaimAction {
    if let obstacle { return .refused(because: obstacle) }
    place = .queue(queue)
    return claimed(waits: mustWait, needsPermit: false)
  }

  /// Claims the operation for a group, whose engine is notified later unless the operation is ready now.
  mutating func claim(for supervisor: OperationSupervisor, index: Int) -> ClaimAction {
    if self.supervisor === supervisor { return .repeated }
    if let obstacle { return .refused(because: obstacle) }
    let waits = mustWait
    let needsPermit = extras?.permit != nil && !lifecycle.isCancelled
    if needsPermit { ledger.withholdPermit() }
    unsafe place = .group(
      Membership(supervisor: .passUnretained(supervisor), index: index, owesReadiness: waits || needsPermit)
    )
    return claimed(waits: waits, needsPermit: needsPermit)
  }

  private func claimed(waits: Bool, needsPermit: Bool) -> ClaimAction {
    .claimed(
      waits: waits,
      needsPermit: needsPermit,
      isAwaited: ledger.dependents?.isEmpty == false,
      hasWeight: extras.map { $0.progressWeight != 1 || $0.progress != nil } ?? false,
      isCancelled: lifecycle.isCancelled
    )
  }

  private var obstacle: String? {
    if lifecycle.phase != .pending { return "has been started" }
    switch place {
    case .none: return nil
    case .queue: return "is in a queue"
    case .group: return "is in a group"
    }
  }

  private var mustWait: Bool { !isSatisfied && !lifecycle.isCancelled }

  /// Releases the claim of a group that is being released.
  mutating func becomeFree() {
    if lifecycle.phase == .pending { place = .none }
    unsafe membership?.supervisor = nil
  }

  /// Returns the supervisor to notify that the operation is ready, unless it has been notified, and whether the member was
  /// started before, without its permit.
  mutating func takeNotice() -> ReadinessNotice? {
    guard membership?.owesReadiness == true else { return nil }
    membership?.owesReadiness = false
    return supervisor.map { ($0, lifecycle.phase == .pending && starter != nil) }
  }

  /// Returns the supervisor of a cancelled member, which must start it so that it finishes, and whether the member waited
  /// for more than a slot.
  mutating func takeCancelledMember() -> (supervisor: OperationSupervisor, wasNotReady: Bool)? {
    guard lifecycle.phase == .pending, let supervisor else { return nil }
    defer { membership?.owesReadiness = false }
    return (supervisor, membership?.owesReadiness == true)
  }

  /// Whether the operation is a member that only waits for a slot.
  var waitsForSlot: Bool { lifecycle.phase == .pending && membership?.owesReadiness == false }

  mutating func gateDidOpen() -> (nudges: Bool, waiters: [@Sendable () -> Void], notice: ReadinessNotice?) {
    let nudges = bridge.gateDidOpen(isWaiting: ledger.isWaiting)
    if bridge.isOpening { return (nudges, [], nil) }
    defer { gateWaiters = [] }
    return (nudges, gateWaiters, isSatisfied ? takeNotice() : nil)
  }

  // MARK: The permit

  var permitUpdate: PermitUpdate? { extras?.permit.map { ($0, ledger.permit, supervisor, queue) } }

  /// Makes the operation wait for its permit: before it is enqueued or, for its group, when that has started. Returns
  /// the gate to add to Foundation, and the update to carry out if only the permit is waited for.
  mutating func requirePermit(for supervisor: OperationSupervisor?) -> (gate: Operation?, update: PermitUpdate?) {
    guard extras?.permit != nil, self.supervisor === supervisor, !lifecycle.isCancelled else { return (nil, nil) }
    let update = ledger.requirePermit() == .requestPermit ? permitUpdate : nil
    return (ledger.isWaiting ? bridge.makeGateIfRead() : nil, update)
  }

  /// Puts a member that is being prepared back to waiting for its permit, and returns its starter. Nil if the caller
  /// must finish the member without executing it.
  mutating func awaitPermitAgain() -> (starter: OperationStarter?, update: PermitUpdate?)? {
    guard lifecycle.proceed(to: .pending) else { return nil }
    ledger.returnPermit()
    membership?.owesReadiness = true
    return (starter, permitUpdate)
  }

  // MARK: Start and end

  mutating func start() -> StartAction {
    guard lifecycle.start(preparing: extras?.needsPreparation ?? false) else {
      return lifecycle.phase == .finished ? .ignore : .refuse
    }
    startTime = .now
    return nextStep
  }

  mutating func startByHand() -> StartAction {
    guard lifecycle.phase == .pending else { return start() }
    if case .group = place { return .isMember }
    guard mustWait else { return start() }
    return ledger.isWaiting ? .notReady : .awaitGate
  }

  mutating func start(by starter: OperationStarter?) -> StartAction {
    switch lifecycle.phase {
    case .pending:
      let mustWait = mustWait
      if var membership {
        membership.owesReadiness = mustWait
        if !mustWait { membership.starter = starter }
        self.membership = membership
      }
      return mustWait ? .notReady : start()
    case .executing:
      // The pause may still last: a member whose priority was raised is in the ready list once more after its start.
      guard let pause = extras?.pause, pause.timer == nil else { return .isGone }
      membership?.starter = starter
      extras?.pause = nil
      return .resume(pause)
    case .preparing, .evaluating, .skipped, .ending, .finished: return .isGone
    }
  }

  mutating func proceed(to phase: OperationLifecycle.Phase) -> Bool {
    guard lifecycle.proceed(to: phase) else { return false }
    startTime = .now
    return true
  }

  mutating func execute() -> StartAction {
    _ = proceed(to: .executing)
    return nextStep
  }

  private var nextStep: StartAction {
    switch lifecycle.phase {
    case .preparing: .prepare(extras?.permit, supervisor)
    case .executing: .execute(observers, hasTimeout: extras?.timeout != nil, trace)
    case .skipped: .skip
    case .pending, .evaluating, .ending, .finished: .ignore
    }
  }

  mutating func settle() -> End {
    let former = extras
    extras = former?.remainder
    defer {
      bridge.close()
      waiters = []
      switch place {
      case .none: break
      case .queue: place = .queue(nil)
      case .group: place = .group(Membership())
      }
    }
    return End(
      dependencies: ledger.takeDependencies(),
      dependents: ledger.close(),
      waiters: waiters,
      place: place,
      extras: former,
      lifecycle: lifecycle
    )
  }
}
