import Foundation

/// Everything an ``AsyncOperation`` keeps under its one lock.
@safe struct OperationCore {
  /// Through whom the operation runs. A second enqueueing is caught here, with a sentence, instead of in Foundation.
  enum Place {
    case none
    /// Not kept when the operation has ended. Until then the queue stays alive anyway, for Foundation keeps it so.
    case queue(OperationQueue?)
    case group
  }

  /// Who starts the operation.
  enum Starter {
    case anyone
    /// A queue; ready or not, as Foundation does it.
    case queue
    case member(of: OperationStarter?, hasPermit: Bool)
  }

  enum StartAction {
    case execute(Execution)
    /// There are inputs and conditions.
    case prepare
    /// It has a slot again.
    case resume(OperationPause)
    case skip
    case ignore
    case refuse
    /// Something is still waited for.
    case notReady
    /// Nothing is waited for any more, but another thread may be just about to tell Foundation.
    case awaitGate
    /// A group starts its members; nobody else does.
    case isMember
    /// It has been ended while it waited for a slot, which it has no use for any more.
    case isGone
    case needsPermit(StartPermit)
  }

  /// What is needed to execute.
  struct Execution {
    var observers: [OperationObserver]
    var hasTimeout: Bool
    var trace: OperationTrace?
  }

  /// What is to be done about a finish, and who follows it.
  struct Finish {
    var action: OperationLifecycle.FinishAction
    var trace: OperationTrace?
  }

  enum ClaimAction {
    case claimed(isReady: Bool, hasExtras: Bool)
    case refused(because: String)
    /// The operation is in this very group already.
    case repeated
  }

  /// What is left to tell and to let go when the operation has ended.
  struct End {
    var remains: DependencyLedger.Remains
    var waiters: [@Sendable () -> Void]
    var starter: OperationStarter?
    var memberIndex: Int
    var failed: Bool
    var holdsSlot: Bool
    var extras: OperationExtras.Remains?
    var queue: OperationQueue?
  }

  var lifecycle = OperationLifecycle()
  var ledger = DependencyLedger()
  var observers: [OperationObserver] = []
  var waiters: [@Sendable () -> Void] = []
  /// Those who start the operation by hand while another thread opens its gate.
  var gateWaiters: [@Sendable () -> Void] = []
  var name: String?
  private(set) var extras: OperationExtras?
  /// What the supervisor remembers the operation by.
  private(set) var memberIndex = 0
  /// The engine of the group the operation is in. Not counted: a group that is never started would hold its members,
  /// and they its engine. It is valid while it is here, for a group that goes away takes it out, under this lock,
  /// before.
  private var unmanagedSupervisor: Unmanaged<OperationSupervisor>?
  private(set) var starter: OperationStarter?
  private(set) var place = Place.none
  /// When it was started, and when its execution began if something came in between.
  private(set) var startTime = CoarseTime.never
  /// The supervisor has not been told yet that the operation is ready.
  private var owesReadiness = false
  /// The observers, the dependents and the waiters have been told of the end.
  private(set) var isSettled = false
  /// There is one to be cleared at the end: on Linux it stays, and what it captures with it.
  var hasCompletionBlock = false

  var supervisor: OperationSupervisor? { unsafe unmanagedSupervisor?.takeUnretainedValue() }

  /// For what is changed.
  mutating func makeExtras() -> OperationExtras {
    if let extras { return extras }
    let new = OperationExtras()
    extras = new
    return new
  }

  /// The clock of the group that the operation was in, if it has none of its own.
  mutating func keep(_ clock: any Clock<Duration>) {
    if extras?.clock == nil { makeExtras().clock = clock }
  }

  // MARK: Places

  mutating func claim(for queue: OperationQueue?) -> ClaimAction { claim(.queue(queue), supervisor: nil) }

  /// Takes the operation for a group, whose engine is told when it is ready, unless it is so already.
  mutating func claim(for supervisor: OperationSupervisor, index: Int) -> ClaimAction {
    if case .group = place, self.supervisor === supervisor { return .repeated }
    let action = claim(.group, supervisor: supervisor)
    // One that is in another group keeps its index there.
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
    if let supervisor { unsafe unmanagedSupervisor = .passUnretained(supervisor) }
    let isReady = ledger.isSatisfied || lifecycle.isCancelled
    owesReadiness = supervisor != nil && !isReady
    return .claimed(isReady: isReady, hasExtras: extras != nil)
  }

  /// The group has gone away, or has ended before the operation came.
  mutating func leaveGroup() {
    unsafe unmanagedSupervisor = nil
    owesReadiness = false
  }

  /// The one that the operation was added to by the toolkit's verbs.
  var queue: OperationQueue? {
    if case .queue(let queue) = place { return queue }
    return nil
  }

  mutating func becomeFree() {
    leaveGroup()
    place = .none
  }

  /// The supervisor to tell that the operation has become ready, if that has not been said yet.
  mutating func takeReadiness() -> OperationSupervisor? {
    guard owesReadiness else { return nil }
    owesReadiness = false
    return supervisor
  }

  /// The supervisor that has to hear that the operation became ready, if that is what `action` means.
  ///
  /// Foundation hears of it first, and a member is started only after its gate, if it has one, is open.
  mutating func supervisorToTell(after action: DependencyLedger.CountAction) -> OperationSupervisor? {
    switch action {
    case .keepWaiting, .ignore, .ask, .becomeReady(gate: _?): nil
    case .becomeReady(gate: nil): takeReadiness()
    }
  }

  /// What is left to do by the one who has opened a gate.
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
      case .member(let starter, let hasPermit):
        owesReadiness = !ledger.isSatisfied && !lifecycle.isCancelled
        if owesReadiness { return .notReady }
        if !hasPermit, let permit = extras?.permit, !lifecycle.isCancelled {
          owesReadiness = true
          return .needsPermit(permit)
        }
        self.starter = starter
      }
    } else if case .member(let starter, _) = starter {
      guard lifecycle.phase == .executing, let pause = extras?.pause else { return .isGone }
      self.starter = starter
      extras?.pause = nil
      return .resume(pause)
    }
    let action = lifecycle.start(preparing: extras?.isToBePrepared ?? false)
    if action != .ignore, action != .refuse { startTime = .now }
    switch action {
    case .execute: return .execute(execution)
    case .prepare: return .prepare
    case .skip: return .skip
    case .ignore: return .ignore
    case .refuse: return .refuse
    }
  }

  /// The one who prepares the operation goes a step further.
  mutating func proceed(to phase: OperationLifecycle.Phase) -> Bool {
    guard lifecycle.proceed(to: phase) else { return false }
    startTime = .now
    return true
  }

  var execution: Execution {
    Execution(observers: observers, hasTimeout: extras?.timeout != nil, trace: trace)
  }

  /// Who follows the operation: mostly nobody.
  var trace: OperationTrace? { extras?.trace }

  mutating func finish(_ report: FailureReport? = nil) -> Finish {
    Finish(action: lifecycle.finish(report), trace: trace)
  }

  mutating func takeEnd() -> End {
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
