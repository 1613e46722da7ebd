import Foundation

/// What an operation waits for and who waits for it, as a value.
///
/// The dependent counts; the dependency tells. Foundation is given one private *gate* for the whole count instead of an
/// edge a dependency, and only if it asks: on Linux its own edges are quadratic in a queue and point to memory that may
/// be gone. See ``AsyncOperation/isReady``.
struct DependencyLedger {
  enum Dependency: LedgerEntry {
    /// An operation of the toolkit, which tells us itself.
    case own(AsyncOperation)
    /// Any other, which a relay waits for.
    case foreign(Operation, FinishRelay)

    var operation: Operation {
      switch self {
      case .own(let operation): operation
      case .foreign(let operation, _): operation
      }
    }

    var identity: ObjectIdentifier { ObjectIdentifier(operation) }
  }

  enum CountAction {
    case keepWaiting
    /// Nothing is waited for any more; the gate, if Foundation was given one, is to be opened.
    case becomeReady(gate: Operation?)
    /// Nothing is waited for any more but the permit, which is to be requested.
    case ask
    case ignore
  }

  /// Whether the operation needs a permit when everything it waits for has finished. Counts as one to wait for.
  enum Permit {
    case notNeeded
    /// To be requested when nothing else is waited for.
    case due
    case requested
    case granted
  }

  enum Readiness {
    /// Nothing is waited for here: Foundation decides.
    case leftToFoundation
    /// The same, and Foundation, which was told the contrary before, may have overlooked it: it is to be nudged.
    case overlooked
    case waiting
    /// Foundation does not know yet that something is waited for: give it the gate.
    case waitingBehindNew(gate: Operation)
  }

  struct WeakDependent: LedgerEntry {
    /// Compared before the reference is looked at, which costs more. It may be that of a later object as well.
    let identity: ObjectIdentifier
    weak var operation: AsyncOperation?

    init(_ operation: AsyncOperation) {
      identity = ObjectIdentifier(operation)
      self.operation = operation
    }
  }

  /// What an operation lets go of when it ends.
  struct Remains {
    var dependencies: [Dependency?]
    var dependents: [WeakDependent?]
  }

  // In an order that leaves no gaps: every operation has one of these.

  /// What is waited for. Never changed without a new ``edition``.
  private(set) var dependencies = LedgerList<Dependency>() { didSet { edition &+= 1 } }
  private(set) var dependents = LedgerList<WeakDependent>()
  private(set) var gate: Operation?
  private(set) var remaining = 0
  /// Tells whether the dependencies have changed since one has looked.
  private(set) var edition: Int32 = 0
  /// Gates that somebody has been told to open, and has not reported open.
  private(set) var openingGates: Int32 = 0
  private(set) var permit = Permit.notNeeded
  private(set) var isClosed = false
  /// Foundation has asked for our readiness, so it has to be told when that changes.
  private(set) var isWatched = false
  private(set) var hasMadeGate = false
  /// Foundation has been told that the operation has to wait, and has not asked again since. A nudge does not change
  /// that: the answer may be noted after it.
  private(set) var hasDenied = false
  /// Whoever reports the gate open is to nudge Foundation.
  private(set) var nudgesWhenOpen = false

  /// Somebody is telling Foundation at this moment that nothing is waited for.
  var isOpeningGate: Bool { openingGates > 0 }

  /// Nothing is waited for, and Foundation knows that.
  var isSatisfied: Bool { remaining == 0 && openingGates == 0 }

  // MARK: What this operation waits for

  /// A dependency named twice counts twice; it is told twice, too.
  ///
  /// - Returns: A gate to give to Foundation, if it has been told before that the operation was ready.
  mutating func add(_ dependency: Dependency) -> Operation? {
    dependencies.append(dependency)
    remaining += 1
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
    return .ask
  }

  /// Forgets a dependency, without counting: what it has not told yet is counted down by the caller.
  ///
  /// - Returns: The relays that waited for it.
  mutating func remove(_ operation: Operation) -> [FinishRelay] {
    dependencies.remove(ObjectIdentifier(operation)).compactMap { dependency in
      if case .foreign(_, let relay) = dependency { return relay }
      return nil
    }
  }

  /// Foundation, or somebody else, asks whether the operation is ready.
  ///
  /// - Parameters:
  ///   - byOpener: It is part of opening the gate that this thread is asked.
  ///   - byNudge: It is part of a nudge, which may come too early for an answer that has not been noted yet.
  mutating func readiness(byOpener: @autoclosure () -> Bool, byNudge: @autoclosure () -> Bool) -> Readiness {
    isWatched = true
    if remaining > 0 {
      hasDenied = true
      return makeGate().map { .waitingBehindNew(gate: $0) } ?? .waiting
    }
    guard hasDenied, !byOpener() else { return .leftToFoundation }
    if openingGates > 0 {
      nudgesWhenOpen = true
      return .leftToFoundation
    }
    if byNudge() { return .leftToFoundation }
    hasDenied = false
    return .overlooked
  }

  // MARK: The permit

  var isPermitPending: Bool {
    switch permit {
    case .due, .requested: true
    case .notNeeded, .granted: false
    }
  }

  /// The operation needs a permit.
  ///
  /// - Returns: A gate to give to Foundation, if it has been told before that the operation was ready.
  mutating func requirePermit() -> (gate: Operation?, action: CountAction) {
    guard !isClosed, permit == .notNeeded else { return (nil, .ignore) }
    permit = .due
    remaining += 1
    return (isWatched ? makeGate() : nil, nextStep())
  }

  mutating func grantPermit() -> CountAction {
    guard permit == .requested else { return .ignore }
    permit = .granted
    return countDown()
  }

  /// The operation has left the wait queue, because it waits for something else again.
  mutating func postponePermit() -> CountAction {
    permit = .due
    return isClosed ? .ignore : nextStep()
  }

  // MARK: The gate

  /// The gate, if there is need of one and none yet.
  mutating func makeGate() -> Operation? {
    guard remaining > 0, gate == nil else { return nil }
    let new = Operation()
    gate = new
    hasMadeGate = true
    return new
  }

  /// All dependencies are known to have finished, though some have not said so yet: their notices will be ignored.
  ///
  /// - Returns: The gate, to be opened.
  mutating func waitNoMore() -> Operation? {
    remaining = 0
    return takeGate()
  }

  private mutating func takeGate() -> Operation? {
    defer { gate = nil }
    if gate != nil { openingGates += 1 }
    return gate
  }

  /// - Returns: Whether Foundation is to be nudged.
  mutating func gateDidOpen() -> Bool {
    openingGates -= 1
    // What those who open them are answered may be noted in any order.
    if openingGates > 0 { nudgesWhenOpen = true }
    guard isSatisfied, nudgesWhenOpen else { return false }
    nudgesWhenOpen = false
    return true
  }

  /// Something may have made Foundation believe, a moment too late, that the operation has to wait.
  ///
  /// It asks, and notes the answer, in two steps. If the gate opens in between, it believes the older answer; what it
  /// does about that is to ask once more, and to note the answer, but not to run the operation.
  ///
  /// - Returns: Whether Foundation is to be nudged now, if it holds the operation for ready. A gate that opens later
  ///   finds everything in its place, and one that is just being opened is followed by a nudge.
  mutating func lookAgain(isCancelled: Bool) -> Bool {
    guard hasMadeGate else { return false }
    if isCancelled { return true }
    guard remaining == 0 else { return false }
    if openingGates > 0 {
      nudgesWhenOpen = true
      return false
    }
    return true
  }

  // MARK: Who waits for this operation

  // A weak reference that is looked at becomes a strong one, and may turn out to be the last. So what these two have
  // looked at is returned, to be released when the lock is.

  /// - Returns: Whether the dependent has to wait: not if the operation has ended.
  mutating func add(dependent: AsyncOperation) -> (isWaitedFor: Bool, seen: [AsyncOperation?]) {
    guard !isClosed else { return (false, []) }
    var seen: [AsyncOperation?] = []
    if dependents.willGrow {
      // Those that have been released leave when the list would grow.
      dependents.compact { dependent in
        let operation = dependent.operation
        seen.append(operation)
        return operation != nil
      }
    }
    dependents.append(WeakDependent(dependent))
    return (true, seen)
  }

  /// - Returns: How many notices are taken back.
  mutating func remove(dependent: AsyncOperation) -> (count: Int, seen: [AsyncOperation?]) {
    let seen = dependents.remove(ObjectIdentifier(dependent)).map(\.operation)
    return (seen.count { $0 === dependent }, seen)
  }

  // MARK: The end

  mutating func close() -> Remains {
    isClosed = true
    defer { gate = nil }
    return Remains(dependencies: dependencies.takeAll(), dependents: dependents.takeAll())
  }
}
