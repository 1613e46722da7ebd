import Foundation

/// The dependencies and the dependents of an operation, as a value.
///
/// The dependent counts its unfinished dependencies, and each dependency notifies its dependents. Foundation gets a
/// single dependency, a private operation called the *gate*, which opens when the count reaches zero. The gate is
/// created only when readiness is checked, which a group does not do. On Linux, Foundation's own dependencies cost
/// quadratic time in a queue, and point to memory that may have been released.
struct DependencyLedger {
  enum Dependency: LedgerEntry {
    /// An `AsyncOperation`, which notifies its dependents itself.
    case own(AsyncOperation)
    /// Any other operation, and the relay that waits for it.
    case foreign(Operation, FinishRelay)

    var operation: Operation {
      switch self {
      case .own(let operation): operation
      case .foreign(let operation, _): operation
      }
    }

    var identity: ObjectIdentifier { ObjectIdentifier(operation) }
  }

  /// The action to carry out after the count has changed.
  enum CountAction {
    case keepWaiting
    /// All dependencies have finished. The caller must open the gate, if there is one.
    case becomeReady(gate: Operation?)
    /// All dependencies have finished. The caller must request the permit.
    case requestPermit
    case ignore
  }

  /// The state of the permit that the operation needs once its dependencies have finished. A pending permit counts as
  /// a dependency.
  enum Permit {
    case notNeeded
    /// The operation is a member of a group that has not started.
    case withheld
    /// The permit will be requested when all dependencies have finished.
    case due
    case requested
    case granted
  }

  /// The answer to a check of readiness.
  enum Readiness {
    /// The ledger has no unfinished dependencies, so Foundation decides.
    case leftToFoundation
    /// As ``leftToFoundation``, but Foundation may have overlooked the change, because an earlier check returned the
    /// opposite. The caller must nudge Foundation.
    case overlooked
    case waiting
    /// The operation must wait, and the gate is new. The caller must add the gate to Foundation.
    case waitingBehindNew(gate: Operation)
  }

  struct WeakDependent: LedgerEntry {
    /// The identity, which is compared first because reading the weak reference costs more. After the operation has
    /// been released, another object may have the same identity.
    let identity: ObjectIdentifier
    weak var operation: AsyncOperation?

    init(_ operation: AsyncOperation) {
      identity = ObjectIdentifier(operation)
      self.operation = operation
    }
  }

  /// The references that an operation releases when it ends.
  struct Remains {
    var dependencies: [Dependency?]
    var dependents: [WeakDependent?]
  }

  // The order leaves no gaps in memory, because every operation has a ledger.

  /// The dependencies. Every change sets a new ``edition``.
  private(set) var dependencies = LedgerList<Dependency>() { didSet { edition &+= 1 } }
  private(set) var dependents = LedgerList<WeakDependent>()
  /// The gate, until a caller opens it.
  private(set) var gate: Operation?
  /// The number of unfinished dependencies, including a pending permit.
  private(set) var remaining = 0
  /// A number that changes with the dependencies, so that a reader can detect changes.
  private(set) var edition: Int32 = 0
  /// The number of gates that callers are opening and have not reported open.
  private(set) var openingGates: Int32 = 0
  private(set) var permit = Permit.notNeeded
  private(set) var isClosed = false
  /// Whether Foundation has checked readiness, and must be notified when readiness changes.
  private(set) var isWatched = false
  private(set) var hasMadeGate = false
  /// Whether Foundation's last check returned that the operation must wait. A nudge does not reset this property,
  /// because Foundation may record the answer after the nudge.
  private(set) var hasAnsweredNotReady = false
  /// Whether the caller that reports the gate open must nudge Foundation.
  private(set) var nudgesWhenOpen = false

  /// Whether a thread is currently opening a gate.
  var isOpeningGate: Bool { openingGates > 0 }

  /// Whether all dependencies have finished, and Foundation has been notified.
  var isSatisfied: Bool { remaining == 0 && openingGates == 0 }

  // MARK: Dependencies

  /// Adds a dependency. A dependency that is added twice counts twice, and notifies twice.
  ///
  /// The operation gives up a permit that it has requested or been granted, and requests the permit again when the
  /// dependency has finished.
  ///
  /// - Returns: A gate to add to Foundation, if Foundation has checked readiness before.
  mutating func add(_ dependency: Dependency) -> Operation? {
    dependencies.append(dependency)
    remaining += permit == .granted ? 2 : 1
    if permit == .requested || permit == .granted { permit = .due }
    return isWatched ? makeGate() : nil
  }

  mutating func countDown(by count: Int = 1) -> CountAction {
    guard !isClosed, count > 0, remaining > 0 else { return .ignore }
    remaining -= count
    return nextStep()
  }

  private mutating func nextStep() -> CountAction {
    if remaining == 0 { return .becomeReady(gate: takeGate()) }
    guard remaining == 1, permit == .due else { return .keepWaiting }
    permit = .requested
    return .requestPermit
  }

  /// Removes a dependency without changing the count. The caller counts down the notifications that have not arrived.
  ///
  /// - Returns: The relays that waited for the operation.
  mutating func remove(_ operation: Operation) -> [FinishRelay] {
    dependencies.remove(ObjectIdentifier(operation)).compactMap { dependency in
      if case .foreign(_, let relay) = dependency { return relay }
      return nil
    }
  }

  /// Returns the readiness of the operation, for Foundation or any other caller.
  ///
  /// - Parameters:
  ///   - byOpener: Whether the check is part of opening the gate on this thread.
  ///   - byNudge: Whether the check is part of a nudge, which may come before Foundation has recorded an earlier
  ///     answer.
  mutating func readiness(byOpener: @autoclosure () -> Bool, byNudge: @autoclosure () -> Bool) -> Readiness {
    isWatched = true
    if remaining > 0 {
      hasAnsweredNotReady = true
      return makeGate().map { .waitingBehindNew(gate: $0) } ?? .waiting
    }
    guard hasAnsweredNotReady, !byOpener() else { return .leftToFoundation }
    if openingGates > 0 {
      nudgesWhenOpen = true
      return .leftToFoundation
    }
    if byNudge() { return .leftToFoundation }
    hasAnsweredNotReady = false
    return .overlooked
  }

  // MARK: The permit

  var isPermitPending: Bool {
    switch permit {
    case .withheld, .due, .requested: true
    case .notNeeded, .granted: false
    }
  }

  /// Withholds the permit of a member until its group starts.
  mutating func withholdPermit() {
    guard !isClosed, permit == .notNeeded else { return }
    permit = .withheld
    remaining += 1
  }

  /// Forgets a withheld permit, because the group has been released without starting.
  mutating func forgetPermit() -> CountAction {
    guard permit == .withheld else { return .ignore }
    permit = .notNeeded
    return countDown()
  }

  /// Requires the permit, which the operation requests when all dependencies have finished.
  ///
  /// - Returns: A gate to add to Foundation, if Foundation has checked readiness before, and the action to carry out.
  mutating func requirePermit() -> (gate: Operation?, action: CountAction) {
    withholdPermit()
    guard !isClosed, permit == .withheld else { return (nil, .ignore) }
    permit = .due
    return (isWatched ? makeGate() : nil, nextStep())
  }

  mutating func grantPermit() -> CountAction {
    guard permit == .requested else { return .ignore }
    permit = .granted
    return countDown()
  }

  /// Waits for the permit again, because it had been given to another operation before this one started.
  mutating func returnPermit() {
    guard permit == .granted else { return }
    permit = .requested
    remaining += 1
  }

  // MARK: The gate

  /// Returns a new gate, if the operation needs one and has none.
  mutating func makeGate() -> Operation? {
    guard remaining > 0, gate == nil else { return nil }
    let new = Operation()
    gate = new
    hasMadeGate = true
    return new
  }

  /// Ends the count, because all dependencies have finished. Later notifications are ignored.
  ///
  /// - Returns: The gate, which the caller must open.
  mutating func endCounting() -> Operation? {
    remaining = 0
    return takeGate()
  }

  private mutating func takeGate() -> Operation? {
    defer { gate = nil }
    if gate != nil { openingGates += 1 }
    return gate
  }

  /// Records that a gate has been opened.
  ///
  /// - Returns: Whether the caller must nudge Foundation.
  mutating func gateDidOpen() -> Bool {
    openingGates -= 1
    // Foundation may record the answers of several opening threads in any order.
    if openingGates > 0 { nudgesWhenOpen = true }
    guard isSatisfied, nudgesWhenOpen else { return false }
    nudgesWhenOpen = false
    return true
  }

  /// Checks whether Foundation may have recorded an outdated answer.
  ///
  /// Foundation checks readiness and records the answer in two steps. If the gate opens in between, Foundation keeps
  /// the older answer. Foundation then checks once more and records the answer, but does not run the operation.
  ///
  /// - Returns: Whether the caller must nudge Foundation now, if Foundation considers the operation ready. A gate that
  ///   opens later needs no nudge. The thread that is opening a gate nudges Foundation itself.
  mutating func recheckReadiness(isCancelled: Bool) -> Bool {
    guard hasMadeGate else { return false }
    if isCancelled { return true }
    guard remaining == 0 else { return false }
    if openingGates > 0 {
      nudgesWhenOpen = true
      return false
    }
    return true
  }

  // MARK: Dependents

  // Reading a weak reference creates a strong one, which may become the last. The next two methods therefore return the
  // references they have read, and the caller releases them after the lock.

  /// Adds a dependent.
  ///
  /// - Returns: Whether the dependent must wait, because this operation has not ended, and the references that were
  ///   read.
  mutating func add(dependent: AsyncOperation) -> (isWaitedFor: Bool, seen: [AsyncOperation?]) {
    guard !isClosed else { return (false, []) }
    var seen: [AsyncOperation?] = []
    if dependents.willGrow {
      // Dependents that have been released are removed when the list would grow.
      dependents.compact { dependent in
        let operation = dependent.operation
        seen.append(operation)
        return operation != nil
      }
    }
    dependents.append(WeakDependent(dependent))
    return (true, seen)
  }

  /// Removes a dependent.
  ///
  /// - Returns: The number of notifications that will not be sent, and the references that were read.
  mutating func remove(dependent: AsyncOperation) -> (count: Int, seen: [AsyncOperation?]) {
    let seen = dependents.remove(ObjectIdentifier(dependent)).map(\.operation)
    return (seen.count { $0 === dependent }, seen)
  }

  // MARK: The end

  /// Ends the counting and the notifications.
  ///
  /// - Returns: The references to release and the dependents to notify.
  mutating func close() -> Remains {
    isClosed = true
    defer { gate = nil }
    return Remains(dependencies: dependencies.takeAll(), dependents: dependents.takeAll())
  }
}
