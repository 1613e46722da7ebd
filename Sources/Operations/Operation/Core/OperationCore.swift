import Foundation

/// The state of an ``AsyncOperation``, guarded by its one lock.
@safe struct OperationCore {
  /// The place where the operation runs. The package checks it to trap with its own message when an operation is added
  /// twice.
  enum Place {
    case none
    /// The operation is in this queue. The reference is released when the operation has ended. Until then, Foundation
    /// keeps the queue alive in any case.
    case queue(OperationQueue?)
    case group
  }

  /// The caller that starts the operation.
  enum Starter {
    case anyone
    /// A queue, which may start an operation that is not ready, as Foundation does.
    case queue
    case member(of: OperationStarter?)
  }

  /// The action that the caller of ``OperationCore/start(by:)`` must carry out.
  enum StartAction {
    case execute(Execution)
    /// The operation has inputs, conditions or a permit.
    case prepare
    /// A paused operation has a slot again.
    case resume(OperationPause)
    case skip
    case ignore
    case refuse
    /// There are unfinished dependencies.
    case notReady
    /// All dependencies have finished, but another thread may be about to notify Foundation.
    case awaitGate
    /// The operation is a member of a group, and only the group may start it.
    case isMember
    /// The operation was ended while it waited for a slot, and does not need the slot any more.
    case isGone
  }

  /// The values that the execution needs.
  struct Execution {
    var observers: [OperationObserver]
    var hasTimeout: Bool
    var trace: OperationTrace?
  }

  /// The action of a finish, and the trace.
  struct Finish {
    var action: OperationLifecycle.FinishAction
    var trace: OperationTrace?
  }

  enum ClaimAction {
    /// - Parameters:
    ///   - waits: Whether the operation has unfinished dependencies.
    ///   - needsPermit: Whether the operation is a member that must request a permit when its group starts.
    case claimed(waits: Bool, needsPermit: Bool, hasExtras: Bool)
    case refused(because: String)
    /// The operation is already in this group.
    case repeated
  }

  /// The objects that the caller must notify and release when the operation has ended.
  struct End {
    var remains: DependencyLedger.Remains
    var waiters: [@Sendable () -> Void]
    var starter: OperationStarter?
    var memberIndex: Int
    var failed: Bool
    var holdsSlot: Bool
    var extras: OperationExtras.Remains?
    /// Held only so that the caller releases it after the lock, because it may be the last reference.
    var queue: OperationQueue?
  }

  var lifecycle = OperationLifecycle()
  var ledger = DependencyLedger()
  var observers: [OperationObserver] = []
  var waiters: [@Sendable () -> Void] = []
  /// Closures that are called when the gate is open. Each resumes a thread that starts the operation by hand.
  var gateWaiters: [@Sendable () -> Void] = []
  var name: String?
  private(set) var extras: OperationExtras?
  /// The index by which the supervisor identifies the operation.
  private(set) var memberIndex = 0
  /// The engine of the group that contains the operation.
  ///
  /// The reference is not counted, because the engine holds the members. A counted reference would form a cycle in a
  /// group that is never started. A stored reference is valid, because a group that is released first removes it under
  /// this lock.
  private var unmanagedSupervisor: Unmanaged<OperationSupervisor>?
  private(set) var starter: OperationStarter?
  private(set) var place = Place.none
  /// The time when the operation was started, or when it last proceeded to evaluating or executing.
  private(set) var startTime = CoarseTime.never
  /// Whether the supervisor has yet to be notified that the operation is ready.
  private var owesReadiness = false
  /// Whether the observers have been notified of the end. The dependents and the waiters are notified from then on.
  private(set) var isSettled = false
  /// Whether a completion block must be cleared at the end. On Linux, Foundation would otherwise keep the block and its
  /// captures.
  var hasCompletionBlock = false

  var supervisor: OperationSupervisor? { unsafe unmanagedSupervisor?.takeUnretainedValue() }

  /// Whether the operation is a member that was started without its permit, and waits to be started again.
  var isReturning: Bool { lifecycle.phase == .pending && starter != nil }

  /// Returns the extras, creating them on first use.
  mutating func makeExtras() -> OperationExtras {
    if let extras { return extras }
    let new = OperationExtras()
    extras = new
    return new
  }

  /// Stores the clock of the operation's former group, if the operation has no clock of its own.
  mutating func keep(_ clock: any Clock<Duration>) {
    if extras?.clock == nil { makeExtras().clock = clock }
  }

  // MARK: Places

  mutating func claim(for queue: OperationQueue?) -> ClaimAction { claim(.queue(queue), supervisor: nil) }

  /// Claims the operation for a group. Its engine is notified when the operation becomes ready, unless it is ready
  /// already.
  mutating func claim(for supervisor: OperationSupervisor, index: Int) -> ClaimAction {
    if case .group = place, self.supervisor === supervisor { return .repeated }
    let action = claim(.group, supervisor: supervisor)
    // An operation in another group keeps its index there.
    if case .claimed = action { memberIndex = index }
    return action
  }

  private mutating func claim(_ place: Place, supervisor: OperationSupervisor?) -> ClaimAction {
    if lifecycle.phase != .pending { return .refused(because: "has been started") }
    switch self.place {
    case .queue: return .refused(because: "is in a queue")
    case .group: return .refused(because: "is in a group")
    case .none: break
    }
    self.place = place
    let waits = !ledger.isSatisfied && !lifecycle.isCancelled
    var needsPermit = false
    if let supervisor {
      unsafe unmanagedSupervisor = .passUnretained(supervisor)
      needsPermit = extras?.permit != nil && !lifecycle.isCancelled
      if needsPermit { ledger.withholdPermit() }
      owesReadiness = waits || needsPermit
    }
    return .claimed(waits: waits, needsPermit: needsPermit, hasExtras: extras != nil)
  }

  /// Removes the reference to the group.
  mutating func leaveGroup() {
    unsafe unmanagedSupervisor = nil
    owesReadiness = false
  }

  /// The queue to which the package's methods added the operation.
  var queue: OperationQueue? {
    if case .queue(let queue) = place { return queue }
    return nil
  }

  /// Releases the claim of a group that is being released.
  mutating func becomeFree() {
    leaveGroup()
    place = .none
  }

  /// Returns the supervisor to notify that the operation is ready, unless it has been notified.
  mutating func takeReadiness() -> OperationSupervisor? {
    guard owesReadiness else { return nil }
    owesReadiness = false
    return supervisor
  }

  /// Returns the supervisor to notify that the operation is ready, if `action` makes it ready without a gate.
  ///
  /// A member with a gate starts after the gate has been opened, because Foundation is notified first.
  mutating func supervisorToNotify(after action: DependencyLedger.CountAction) -> OperationSupervisor? {
    switch action {
    case .keepWaiting, .ignore, .requestPermit, .becomeReady(gate: _?): nil
    case .becomeReady(gate: nil): takeReadiness()
    }
  }

  /// Records that a gate has been opened.
  ///
  /// - Returns: What the caller must do after releasing the lock.
  mutating func gateDidOpen() -> (nudges: Bool, waiters: [@Sendable () -> Void], supervisor: OperationSupervisor?) {
    let nudges = ledger.gateDidOpen()
    if ledger.isOpeningGate { return (nudges, [], nil) }
    defer { gateWaiters = [] }
    return (nudges, gateWaiters, ledger.isSatisfied ? takeReadiness() : nil)
  }

  // MARK: Start and end

  mutating func start(by starter: Starter) -> StartAction {
    if lifecycle.phase == .pending {
      let isWaiting = ledger.remaining > 0 && !lifecycle.isCancelled
      switch starter {
      case .queue: break
      case .anyone:
        if case .group = place { return .isMember }
        if isWaiting { return .notReady }
        if !ledger.isSatisfied, !lifecycle.isCancelled { return .awaitGate }
      case .member(let starter):
        owesReadiness = !ledger.isSatisfied && !lifecycle.isCancelled
        if owesReadiness { return .notReady }
        self.starter = starter
      }
    } else if case .member(let starter) = starter {
      guard lifecycle.phase == .executing, let pause = extras?.pause else { return .isGone }
      self.starter = starter
      extras?.pause = nil
      return .resume(pause)
    }
    let action = lifecycle.start(preparing: extras?.needsPreparation ?? false)
    if action != .ignore, action != .refuse { startTime = .now }
    switch action {
    case .execute: return .execute(execution)
    case .prepare: return .prepare
    case .skip: return .skip
    case .ignore: return .ignore
    case .refuse: return .refuse
    }
  }

  /// Transitions an operation that is being prepared to `phase`.
  ///
  /// - Returns: Whether it may proceed. Otherwise the caller must finish it without executing it.
  mutating func proceed(to phase: OperationLifecycle.Phase) -> Bool {
    guard lifecycle.proceed(to: phase) else { return false }
    startTime = .now
    return true
  }

  /// Transitions a member that is being prepared back to waiting for its permit.
  ///
  /// - Returns: The starter of the member. Nil if the caller must finish the member without executing it.
  mutating func awaitPermitAgain() -> OperationStarter? {
    guard lifecycle.proceed(to: .pending) else { return nil }
    ledger.returnPermit()
    owesReadiness = true
    return starter
  }

  var execution: Execution {
    Execution(observers: observers, hasTimeout: extras?.timeout != nil, trace: trace)
  }

  /// The trace that receives the operation's lifecycle events. Nil for most operations.
  var trace: OperationTrace? { extras?.trace }

  mutating func finish(_ report: FailureReport? = nil) -> Finish {
    Finish(action: lifecycle.finish(report), trace: trace)
  }

  /// Settles the operation.
  ///
  /// - Returns: The objects to notify and release after the lock.
  mutating func takeFinish() -> End {
    defer {
      isSettled = true
      waiters = []
      starter = nil
      if case .queue = place { place = .queue(nil) }
      leaveGroup()
    }
    return End(
      remains: ledger.close(),
      waiters: waiters,
      starter: starter,
      memberIndex: memberIndex,
      failed: !lifecycle.failures.isEmpty,
      holdsSlot: extras?.pause?.keepsSlot ?? true,
      extras: extras?.takeRemains(),
      queue: queue
    )
  }
}
