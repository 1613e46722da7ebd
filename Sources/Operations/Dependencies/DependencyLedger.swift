import Foundation

/// What an operation waits for and who waits for it, as a value.
///
/// The dependent counts; the dependency tells. Foundation is given one private *gate* for the whole count instead of an
/// edge a dependency, and only if it asks: on Linux its own edges are quadratic in a queue and point to memory that may
/// be gone. See ``AsyncOperation/isReady``.
struct DependencyLedger {
  enum Dependency {
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
  }

  enum CountAction {
    case keepWaiting
    /// Nothing is waited for any more; the gate, if Foundation was given one, is to be opened.
    case becomeReady(gate: Operation?)
    case ignore
  }

  enum Readiness {
    /// Nothing is waited for here: Foundation decides.
    case leftToFoundation
    case waiting
    /// Foundation does not know yet that something is waited for: give it the gate.
    case waitingBehindNew(gate: Operation)
  }

  struct WeakDependent {
    weak var operation: AsyncOperation?
  }

  /// What an operation lets go of when it ends.
  struct Remains {
    var dependencies: [Dependency] = []
    var dependents: [WeakDependent] = []
    var gate: Operation?
  }

  private(set) var dependencies: [Dependency] = []
  private(set) var dependents: [WeakDependent] = []
  private(set) var remaining = 0
  private(set) var isClosed = false
  /// Foundation has asked for our readiness, so it has to be told when that changes.
  private(set) var isWatched = false
  /// Foundation has been given a gate that it may not know to be open yet.
  private(set) var mayHaveClosedGate = false
  private var gate: Operation?

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
    guard remaining == 0 else { return .keepWaiting }
    defer { gate = nil }
    return .becomeReady(gate: gate)
  }

  /// Forgets a dependency, without counting: what it has not told yet is counted down by the caller.
  ///
  /// - Returns: The relays that waited for it.
  mutating func remove(_ operation: Operation) -> [FinishRelay] {
    var relays: [FinishRelay] = []
    dependencies.removeAll { dependency in
      guard dependency.operation === operation else { return false }
      if case .foreign(_, let relay) = dependency { relays.append(relay) }
      return true
    }
    return relays
  }

  mutating func readiness() -> Readiness {
    isWatched = true
    guard remaining > 0 else { return .leftToFoundation }
    return makeGate().map { .waitingBehindNew(gate: $0) } ?? .waiting
  }

  /// The gate, if there is need of one and none yet.
  mutating func makeGate() -> Operation? {
    guard remaining > 0, gate == nil else { return nil }
    let new = Operation()
    gate = new
    mayHaveClosedGate = true
    return new
  }

  /// All dependencies are known to have finished, though some have not said so yet: their notices will be ignored.
  ///
  /// - Returns: The gate, to be opened.
  mutating func waitNoMore() -> Operation? {
    remaining = 0
    defer { gate = nil }
    return gate
  }

  /// Every gate has been seen to be open.
  mutating func noteGatesOpen() { mayHaveClosedGate = false }

  // MARK: Who waits for this operation

  /// - Returns: False if the operation has ended, and the dependent need not wait for it.
  mutating func add(dependent: AsyncOperation) -> Bool {
    guard !isClosed else { return false }
    // Those that have been released leave when the list would grow.
    if dependents.count >= 64, dependents.count == dependents.capacity { dependents.removeAll { $0.operation == nil } }
    dependents.append(WeakDependent(operation: dependent))
    return true
  }

  /// - Returns: How many notices are taken back.
  mutating func remove(dependent: AsyncOperation) -> Int {
    let before = dependents.count
    dependents.removeAll { $0.operation === dependent }
    return before - dependents.count
  }

  // MARK: The end

  mutating func close() -> Remains {
    isClosed = true
    let remains = Remains(dependencies: dependencies, dependents: dependents, gate: gate)
    dependencies = []
    dependents = []
    gate = nil
    return remains
  }
}
