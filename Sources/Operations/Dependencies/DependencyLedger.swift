import Foundation

struct WeakOperation: Identifiable {
  /// Compared first, because reading the weak reference costs more. A later object may have the same identity.
  let id: ObjectIdentifier
  weak var operation: AsyncOperation?

  init(_ operation: AsyncOperation) {
    id = ObjectIdentifier(operation)
    self.operation = operation
  }
}

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

  // The order leaves no gaps in memory, because every operation has a ledger.

  private(set) var dependencies = LedgerList<Dependency>() { didSet { edition &+= 1 } }
  /// Nil when the operation has ended.
  private(set) var dependents: LedgerList<WeakOperation>? = LedgerList()
  private(set) var remaining = 0
  /// Changes with the dependencies, so that a reader can detect changes.
  private(set) var edition: Int32 = 0

  var isClosed: Bool { dependents == nil }

  var isWaiting: Bool { remaining > 0 }

  /// A dependency that is added twice counts and notifies twice.
  mutating func add(_ dependency: Dependency) {
    dependencies.append(dependency)
    remaining += 1
  }

  /// Returns whether this was the last unfinished dependency.
  mutating func countDown(by count: Int = 1) -> Bool {
    guard !isClosed, count > 0, remaining > 0 else { return false }
    remaining -= count
    return remaining == 0
  }

  /// Removes a dependency, and returns its relays. The caller counts down the notifications that have not arrived.
  mutating func remove(_ operation: Operation) -> [FinishRelay] {
    dependencies.remove(ObjectIdentifier(operation)).compactMap { dependency in
      if case .foreign(_, let relay) = dependency { return relay }
      return nil
    }
  }

  /// Returns whether the dependent must wait, because this operation has not ended. After the lock, the caller releases
  /// those that the method has seen, which may be the last references.
  mutating func add(dependent: AsyncOperation) -> (isWaitedFor: Bool, seen: [AsyncOperation?]) {
    if isClosed { return (false, []) }
    var seen: [AsyncOperation?] = []
    if dependents?.willGrow == true {
      // Dependents that have been released are removed when the list would grow.
      seen = dependents?.entries.map(\.operation) ?? []
      dependents?.removeAll { $0.operation == nil }
    }
    dependents?.append(WeakOperation(dependent))
    return (true, seen)
  }

  /// Removes a dependent, and earlier ones of the same identity, which will not be notified.
  mutating func remove(dependent: AsyncOperation) -> [WeakOperation] {
    dependents?.remove(ObjectIdentifier(dependent)) ?? []
  }

  mutating func takeDependencies() -> [Dependency] { dependencies.takeAll() }

  mutating func close() -> [WeakOperation] {
    defer { dependents = nil }
    return dependents?.takeAll() ?? []
  }
}

/// Entries about operations, in the order they were added. The storage never leaves its lock, because ThreadSanitizer
/// does not detect that a copy of an array was released.
struct LedgerList<Entry: Identifiable<ObjectIdentifier>> {
  private var list: [Entry] = []

  var count: Int { list.count }
  var isEmpty: Bool { list.isEmpty }
  /// A copy in new storage.
  var entries: [Entry] { list.map { $0 } }
  var willGrow: Bool { list.count >= 64 && list.count == list.capacity }

  mutating func append(_ entry: Entry) { list.append(entry) }

  mutating func remove(_ identity: ObjectIdentifier) -> [Entry] {
    let removed = list.filter { $0.id == identity }
    list.removeAll { $0.id == identity }
    return removed
  }

  mutating func removeAll(where shouldBeRemoved: (Entry) -> Bool) { list.removeAll(where: shouldBeRemoved) }

  mutating func takeAll() -> [Entry] { exchange(&list, with: []) }
}
