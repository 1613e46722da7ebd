import Foundation

/// The dependencies and the dependents of an operation, as a value. The dependent counts its unfinished dependencies,
/// and each dependency notifies its dependents. Foundation learns of the count through the ``FoundationBridge``.
struct DependencyLedger {
  enum Dependency: Identifiable {
    /// Notifies its dependents itself.
    case own(AsyncOperation)
    /// Any other operation, and the relay that waits for it.
    case foreign(Operation, FinishRelay)

    var operation: Operation {
      switch self {
      case .own(let operation): operation
      case .foreign(let operation, _): operation
      }
    }

    var id: ObjectIdentifier { ObjectIdentifier(operation) }
  }

  enum CountAction {
    /// The caller must notify Foundation or the group.
    case becomeReady
    /// Only the permit is waited for.
    case requestPermit
  }

  /// The state of the permit. A pending permit counts as a dependency.
  enum Permit {
    case notNeeded
    /// Until the group of the member starts.
    case withheld
    /// Until all dependencies have finished.
    case due
    case requested
    case granted
  }

  struct WeakDependent: Identifiable {
    /// Compared first, because reading the weak reference costs more. A later object may have the same identity.
    let id: ObjectIdentifier
    weak var operation: AsyncOperation?

    init(_ operation: AsyncOperation) {
      id = ObjectIdentifier(operation)
      self.operation = operation
    }
  }

  // The order leaves no gaps in memory, because every operation has a ledger.

  private(set) var dependencies = LedgerList<Dependency>() { didSet { edition &+= 1 } }
  /// Nil when the operation has ended.
  private(set) var dependents: LedgerList<WeakDependent>? = LedgerList()
  private(set) var remaining = 0
  /// Changes with the dependencies, so that a reader can detect changes.
  private(set) var edition: Int32 = 0
  private(set) var permit = Permit.notNeeded

  var isClosed: Bool { dependents == nil }

  var isWaiting: Bool { remaining > 0 }

  // MARK: Dependencies

  /// A dependency that is added twice counts and notifies twice. The operation gives up a permit, and requests it again
  /// when the dependency has finished.
  mutating func add(_ dependency: Dependency) {
    dependencies.append(dependency)
    remaining += permit == .granted ? 2 : 1
    if permit == .requested || permit == .granted { permit = .due }
  }

  mutating func countDown(by count: Int = 1) -> CountAction? {
    guard !isClosed, count > 0, remaining > 0 else { return nil }
    remaining -= count
    return nextStep()
  }

  private mutating func nextStep() -> CountAction? {
    if remaining == 0 { return .becomeReady }
    guard remaining == 1, permit == .due else { return nil }
    permit = .requested
    return .requestPermit
  }

  /// Removes a dependency, and returns its relays. The caller counts down the notifications that have not arrived.
  mutating func remove(_ operation: Operation) -> [FinishRelay] {
    dependencies.remove(ObjectIdentifier(operation)).compactMap { dependency in
      if case .foreign(_, let relay) = dependency { return relay }
      return nil
    }
  }

  /// Later notifications are ignored.
  mutating func endCounting() { remaining = 0 }

  // MARK: The permit

  var isPermitPending: Bool {
    switch permit {
    case .withheld, .due, .requested: true
    case .notNeeded, .granted: false
    }
  }

  mutating func withholdPermit() {
    guard !isClosed, permit == .notNeeded else { return }
    permit = .withheld
    remaining += 1
  }

  /// The group has been released without starting.
  mutating func forgetPermit() -> CountAction? {
    guard permit == .withheld else { return nil }
    permit = .notNeeded
    return countDown()
  }

  mutating func requirePermit() -> CountAction? {
    withholdPermit()
    guard !isClosed, permit == .withheld else { return nil }
    permit = .due
    return nextStep()
  }

  mutating func grantPermit() -> CountAction? {
    guard permit == .requested else { return nil }
    permit = .granted
    return countDown()
  }

  /// The permit was given to another operation before this one started.
  mutating func returnPermit() {
    guard permit == .granted else { return }
    permit = .requested
    remaining += 1
  }

  // MARK: Dependents

  // Reading a weak reference creates a strong one, which may become the last. The next two methods therefore return the
  // references they have read, and the caller releases them after the lock.

  /// Returns whether the dependent must wait, because this operation has not ended.
  mutating func add(dependent: AsyncOperation) -> (isWaitedFor: Bool, seen: [AsyncOperation?]) {
    if isClosed { return (false, []) }
    var seen: [AsyncOperation?] = []
    if dependents?.willGrow == true {
      // Dependents that have been released are removed when the list would grow.
      dependents?.compact { dependent in
        let operation = dependent.operation
        seen.append(operation)
        return operation != nil
      }
    }
    dependents?.append(WeakDependent(dependent))
    return (true, seen)
  }

  /// Returns the number of notifications that will not be sent.
  mutating func remove(dependent: AsyncOperation) -> (count: Int, seen: [AsyncOperation?]) {
    let seen = dependents?.remove(ObjectIdentifier(dependent)).map(\.operation) ?? []
    return (seen.count { $0 === dependent }, seen)
  }

  // MARK: The end

  mutating func takeDependencies() -> [Dependency?] { dependencies.takeAll() }

  mutating func close() -> [WeakDependent?] {
    defer { dependents = nil }
    return dependents?.takeAll() ?? []
  }
}
