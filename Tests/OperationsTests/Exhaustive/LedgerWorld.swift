import Foundation

@testable import Operations

/// A ledger, Foundation's books of the same operation, and what has become of both.
struct LedgerWorld: InterleavedWorld {
  /// How far the operation has come with its permit.
  enum Permit: Hashable {
    case idle, waiting, granted, over
  }

  struct Dependencies: OptionSet, Hashable {
    let rawValue: Int

    static func one(_ index: Int) -> Self { Self(rawValue: 1 << index) }
  }

  struct Deeds: Hashable {
    var isCancelled = false
    /// By whoever runs it; its phase is not pending any more.
    var isStarted = false
    var isSettled = false
    /// Which dependencies have the operation on their lists, and which have finished.
    var listed: Dependencies
    var finished: Dependencies = []
    var permit = Permit.idle
    var isKeyFree = false
    var isInPlace = false
  }

  struct Fingerprint: Hashable {
    let remaining: Int
    let permit: DependencyLedger.Permit
    let flags: [Bool]
    let gate: Int?
    let openingGates: Int
    let books: FoundationBooks
    let deeds: Deeds
  }

  /// Only to be named.
  static let dependencies = (0..<3).map { _ in AsyncOperation() }

  /// A dependency may be added when the queue has already decided: then it is too late, which only the walk's own rule
  /// about what was waited for before could tell.
  let mayBeLate: Bool
  let needsPermit: Bool
  var ledger = DependencyLedger()
  var books = FoundationBooks()
  var deeds: Deeds
  /// In the order of making. They stand for what Foundation has in its books.
  private(set) var gates: [Operation] = []
  private(set) var breach: String?

  init(waitingFor count: Int, needsPermit: Bool = false, mayBeLate: Bool = false) {
    self.mayBeLate = mayBeLate
    self.needsPermit = needsPermit
    deeds = Deeds(listed: Dependencies(rawValue: (1 << count) - 1))
    for index in 0..<count { _ = ledger.add(.own(LedgerWorld.dependencies[index])) }
  }

  /// The same after one thread alone has done this.
  func after(_ steps: [LedgerStep]) -> LedgerWorld {
    var (world, actor) = (self, InterleavedActor(steps))
    while let step = actor.takeNext() { step.perform(in: &world, by: &actor) }
    return world
  }

  var fingerprint: Fingerprint {
    Fingerprint(
      remaining: ledger.remaining,
      permit: ledger.permit,
      flags: [ledger.isWatched, ledger.hasMadeGate, ledger.hasDenied, ledger.nudgesWhenOpen, ledger.isClosed],
      gate: ledger.gate.flatMap { gate in gates.firstIndex { $0 === gate } },
      openingGates: Int(ledger.openingGates),
      books: books,
      deeds: deeds
    )
  }

  /// Nothing is waited for, or that does not matter any more.
  var isDue: Bool { ledger.remaining == 0 || deeds.isCancelled }

  var isPermitted: Bool { !needsPermit || !deeds.isInPlace || deeds.permit == .granted }

  mutating func promise(_ isKept: Bool, _ breach: String) {
    if !isKept, self.breach == nil { self.breach = breach }
  }

  /// A gate that the ledger has made, in Foundation's books from now on.
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

  /// The queue has decided to run it.
  mutating func willRun() {
    promise(isDue || mayBeLate, "it is run though it waits for \(ledger.remaining)")
    promise(!ledger.isPermitPending || deeds.isCancelled, "it is run without a permit")
  }

  func breachAtEnd(waiting: Int) -> String? {
    if waiting > 0 { return "somebody waits for ever" }
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
