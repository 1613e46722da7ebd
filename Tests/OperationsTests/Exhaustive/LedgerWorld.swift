import Foundation

@testable import Operations

/// A ledger, Foundation's books of the same operation, and what has become of both.
struct LedgerWorld: InterleavedWorld {
  /// What Foundation on Linux keeps about an operation, as far as it decides when that is run.
  struct Books: Hashable {
    /// Where the operation is. A queue dispatches an operation when it has decided to run it.
    enum Place: Hashable { case outside, enqueued, dispatched, finished }

    struct Gate: Hashable {
      var isOpen = false
      /// Whether it notifies the operation.
      var isWaitedFor = false
    }

    var place = Place.outside
    /// Whether the operation has a queue, which is notified when it becomes ready. That comes before its place in it.
    var hasQueue = false
    var isCancelled = false
    /// The number of its own dependencies, here gates, that are not open.
    var unfinished = 0
    /// The last recorded answer of `isReady`, which the queue goes by.
    var isReadyNoted = true
    var gates: [Gate] = []

    /// Foundation's own `isReady`.
    var isReady: Bool { unfinished == 0 }
  }

  /// How far the operation has come with its permit.
  enum Permit: Hashable { case idle, waiting, granted, over }

  struct Deeds: Hashable {
    var isCancelled = false
    /// Whether the operation has been started, so that its phase is not pending any more.
    var isStarted = false
    var isSettled = false
    /// The dependencies that have the operation on their lists.
    var listed: Set<Int>
    /// The dependencies that have finished.
    var finished: Set<Int> = []
    var permit = Permit.idle
    var isKeyFree = false
    var isInPlace = false
  }

  struct Phase: Hashable {
    let permit: DependencyLedger.Permit
    let books: Books
  }

  /// Only to be named.
  static let dependencies = (0..<3).map { _ in AsyncOperation() }

  /// Whether a dependency may be added when the queue has already decided. Then it is too late, which only the walk's
  /// own rule about earlier dependencies could tell.
  let mayBeLate: Bool
  let needsPermit: Bool
  var ledger = DependencyLedger()
  var books = Books()
  var deeds: Deeds
  /// In the order of making. They stand for what Foundation has in its books.
  private var gates: [Operation] = []
  var breach: String?

  init(waitingFor count: Int, needsPermit: Bool = false, mayBeLate: Bool = false) {
    self.mayBeLate = mayBeLate
    self.needsPermit = needsPermit
    deeds = Deeds(listed: Set(0..<count))
    for index in 0..<count { _ = ledger.add(.own(LedgerWorld.dependencies[index])) }
  }

  /// The same after one thread alone has done this.
  func after(_ steps: [LedgerStep]) -> LedgerWorld {
    var (world, actor) = (self, InterleavedActor(steps))
    while let step = actor.takeNext() {
      step.perform(in: &world, by: &actor)
      world.check()
    }
    return world
  }

  var phase: Phase { Phase(permit: ledger.permit, books: books) }
  var counts: [Int] { [ledger.remaining, Int(ledger.openingGates), gates.firstIndex { $0 === ledger.gate } ?? -1] }
  var flags: [Bool] {
    [ledger.isWatched, ledger.hasMadeGate, ledger.hasDenied, ledger.nudgesWhenOpen, ledger.isClosed]
  }

  /// Whether nothing is waited for, or that does not matter any more.
  var isDue: Bool { ledger.remaining == 0 || deeds.isCancelled }

  var isPermitted: Bool { !needsPermit || !deeds.isInPlace || deeds.permit == .granted }

  /// Enters a gate that the ledger has made in Foundation's books.
  mutating func enter(_ gate: Operation) -> Int {
    promise(!gates.contains { $0 === gate }, "a gate was made twice")
    gates.append(gate)
    books.gates.append(.init())
    return gates.count - 1
  }

  mutating func index(of gate: Operation) -> Int {
    let index = gates.firstIndex { $0 === gate }
    promise(index != nil, "a gate is opened that Foundation was not given")
    return index ?? enter(gate)
  }

  mutating func check() {
    promise(ledger.remaining >= 0, "it counts below zero")
    promise(ledger.openingGates >= 0, "more gates were opened than there are")
    promise(books.unfinished >= 0, "Foundation counts below zero")
  }

  var breachAtEnd: String? {
    if ledger.openingGates > 0 { return "a gate is being opened for ever" }
    let isPermitted = !needsPermit || !deeds.isInPlace || deeds.isKeyFree
    if deeds.listed.isEmpty, isPermitted, !isDue, !ledger.isClosed {
      return "it waits for \(ledger.remaining), which is nothing"
    }
    if isDue, !deeds.isStarted, !books.isReady { return "Foundation does not know that it is ready" }
    if isDue, books.place == .enqueued { return "a wake-up was lost" }
    if books.place == .dispatched, !deeds.isSettled { return "it was run, and does not end" }
    return nil
  }
}
