import Foundation
import Soak
import Testing

@testable import Operations

/// The ledger and the bridge next to Foundation's books, with every order of the critical sections of threads that use them at once.
struct LedgerInterleavingTests {
  private var walk = Interleavings<LedgerStep>()

  private let first: [LedgerStep] = [.dependencyFinishes(0)]
  private let second: [LedgerStep] = [.dependencyFinishes(1)]
  private let late: [LedgerStep] = [.add(1), .dependencyFinishes(1)]
  private let startByHand: [LedgerStep] = [.start(byHand: true)]

  @Test(arguments: [LedgerStep.enqueue, LedgerStep.plainEnqueue])
  mutating func enqueuedWhileDependenciesFinish_runsAndNotTooEarly(enqueue: [LedgerStep]) {
    walk.walk(LedgerWorld(waitingFor: 1), [first, enqueue])
    walk.walk(LedgerWorld(waitingFor: 2), [first, second, enqueue])
    // One of them never finishes.
    walk.walk(LedgerWorld(waitingFor: 2), [first, enqueue, [.ask]])
    walk.expectSuccess(states: 3_000, schedules: 40_000_000_000)
  }

  // Foundation's own method does not check the readiness again afterwards, so a third thread can open two gaps. The
  // thread that enqueues may record an answer after the operation has been cancelled, or after it has become ready if
  // another thread asked in between. So what follows applies to the package's methods.

  @Test mutating func askedInBetween_losesNoWakeUp() {
    let world = LedgerWorld(waitingFor: 1)
    walk.walk(world.after([.makeGate]), [first, LedgerStep.plainEnqueue + [.recheckReadiness], [.ask]])
    walk.walk(world.after(LedgerStep.enqueue), [first, [.ask], [.ask]])
    walk.expectSuccess(states: 8_000, schedules: 100_000_000_000_000)
  }

  @Test mutating func cancelledInBetween_runs() {
    let world = LedgerWorld(waitingFor: 1).after([.makeGate])
    walk.walk(world, [first, LedgerStep.plainEnqueue + [.recheckReadiness], [.cancel]])
    walk.walk(LedgerWorld(waitingFor: 2).after(LedgerStep.enqueue), [first, [.ask], [.cancel]])
    walk.expectSuccess(states: 20_000, schedules: 20_000_000_000_000_000)
  }

  @Test mutating func dependencyRemovedInBetween_countsOnce() {
    for enqueue in [LedgerStep.enqueue, LedgerStep.plainEnqueue] {
      walk.walk(LedgerWorld(waitingFor: 1), [first, enqueue, [.unlist(0)]])
      walk.walk(LedgerWorld(waitingFor: 2), [first, enqueue, [.unlist(1)]])
    }
    walk.expectSuccess(states: 18_000, schedules: 40_000_000_000_000)
  }

  @Test mutating func dependencyAddedInBetween_losesNoWakeUp() {
    let world = LedgerWorld(waitingFor: 1, mayBeLate: true)
    for enqueue in [LedgerStep.enqueue, LedgerStep.plainEnqueue] { walk.walk(world.after(enqueue), [first, late]) }
    walk.expectSuccess(states: 900, schedules: 900_000)
  }

  /// No addition is too late: the dependency that finishes does so after the other has been added.
  @Test mutating func dependencyAddedInTime_isWaitedFor() {
    walk.walk(LedgerWorld(waitingFor: 1), [[.add(1)] + first, LedgerStep.enqueue])
    walk.walk(LedgerWorld(waitingFor: 1), [[.add(1)] + first, LedgerStep.enqueue, second])
    walk.expectSuccess(states: 3_500, schedules: 60_000_000_000_000)
  }

  @Test mutating func dependencyAddedInASuspendedQueue_isWaitedFor() {
    let world = LedgerWorld(waitingFor: 0).after([.ask, .note, .adopt, .attach])
    walk.walk(world, [[.add(1), .schedule], second])
    walk.walk(world, [[.add(1), .schedule], second, [.ask]])
    walk.expectSuccess(states: 300, schedules: 1_000)
  }

  @Test mutating func startedByHandWhenAllHaveFinished_isNotRefused() {
    let world = LedgerWorld(waitingFor: 2)
    walk.walk(world, [first, second, startByHand])
    walk.walk(world, [first + second, [.ask], startByHand])
    walk.walk(world.after(first), [[.ask], startByHand, [.cancel]])
    walk.expectSuccess(states: 1_000, schedules: 1_000_000)
  }

  // MARK: The turn

  @Test mutating func turn_isRequestedWhenNothingElseIsWaitedFor() {
    let world = LedgerWorld(waitingFor: 1, needsTurn: true)
    for enqueue in [LedgerStep.enqueue, LedgerStep.plainEnqueue] {
      walk.walk(world, [first, [.requestTurn] + enqueue, [.free]])
    }
    if isThorough { walk.walk(world, [first, [.requestTurn] + LedgerStep.enqueue, [.free], [.cancel]]) }
    walk.expectSuccess(states: 400, schedules: 40_000)
  }

  @Test mutating func newDependency_leavesTheLine() {
    let free = LedgerWorld(waitingFor: 0, needsTurn: true, mayBeLate: true)
    walk.walk(LedgerWorld(waitingFor: 1, needsTurn: true, mayBeLate: true), [first, [.requestTurn], late, [.free]])
    walk.walk(free, [[.requestTurn], [.add(1)], second, [.free]])
    walk.walk(free, [[.requestTurn], late, [.add(2), .dependencyFinishes(2)], [.free]])
    let called = free.after([.free, .requestTurn, .ask, .note, .adopt, .attach])
    walk.walk(called, [late + [.schedule], [.ask]])
    walk.expectSuccess(states: 1_000, schedules: 100_000)
  }

  /// Another operation takes the keys of a member that has been called, and gives them back.
  @Test mutating func member_standsInLineWhenItsGroupStarts_andAgainWhenItsKeysWereTaken() {
    let member = LedgerWorld(waitingFor: 1, needsTurn: true, isMember: true, mayBeLate: true)
    walk.walk(member, [first, [.groupStart], [.free]])
    walk.walk(member, [first, [.groupStart], [.free, .steal, .free], [.cancel]])
    let called = LedgerWorld(waitingFor: 0, needsTurn: true, isMember: true, mayBeLate: true).after([.free])
    walk.walk(called, [[.groupStart], [.steal, .free]])
    walk.walk(called, [[.groupStart], [.steal, .free], late])
    walk.walk(called, [[.groupStart], late, [.add(2), .dependencyFinishes(2)]])
    walk.expectSuccess(states: 1_000, schedules: 10_000)
  }

  /// A member that waits for its keys gets them together with a slot.
  @Test mutating func member_takesItsKeysAndASlotInOneStep() {
    let member = LedgerWorld(waitingFor: 1, needsTurn: true, isMember: true, takesSlot: true, mayBeLate: true)
    walk.walk(member, [first, [.groupStart], [.free]])
    walk.walk(member, [first, [.groupStart], [.free], [.cancel]])
    let free = LedgerWorld(waitingFor: 0, needsTurn: true, isMember: true, takesSlot: true, mayBeLate: true)
    walk.walk(free, [[.groupStart], [.free], late])
    walk.walk(free, [[.groupStart], late, [.add(2), .dependencyFinishes(2)], [.free]])
    walk.walk(free.after([.free]), [[.groupStart], late, [.cancel]])
    walk.expectSuccess(states: 1_000, schedules: 10_000)
  }
}

/// What an operation waits for, Foundation's books of the same operation, and what has become of them.
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

  /// The state of the operation in the table of keys.
  enum Turn: Hashable { case idle, waiting, called, holding, over }

  struct Deeds: Hashable {
    var isSettled = false
    /// The dependencies that have the operation on their lists.
    var listed: Set<Int>
    /// The dependencies that have finished.
    var finished: Set<Int> = []
    var turn = Turn.idle
    var isKeyFree = false
    /// Whether the operation waits for its keys after its start.
    var waitsStarted = false
  }

  /// Only to be named.
  static let dependencies = (0..<3).map { _ in AsyncOperation() }

  /// Whether a dependency may be added when the queue has already decided. Then it is too late, which only the walk's
  /// own rule about earlier dependencies could tell.
  let mayBeLate: Bool
  let isMember: Bool
  /// Whether its group has a slot for a member whose keys are free.
  let takesSlot: Bool
  var core = OperationCore()
  var books = Books()
  var deeds: Deeds
  /// In the order of making. They stand for what Foundation has in its books.
  private var gates: [Operation] = []
  var breach: String?

  private static let engine = GroupEngine(collectsAll: false)

  init(
    waitingFor count: Int,
    needsTurn: Bool = false,
    isMember: Bool = false,
    takesSlot: Bool = false,
    mayBeLate: Bool = false
  ) {
    self.mayBeLate = mayBeLate
    self.takesSlot = takesSlot
    self.isMember = isMember
    deeds = Deeds(listed: Set(0..<count))
    if needsTurn { core.work = KeyRequest(of: AsyncOperation(), lends: false) }
    if isMember { _ = core.takePlace(in: Self.engine, index: 0) } else { _ = core.takePlace(in: nil) }
    for index in 0..<count { _ = core.add(.own(LedgerWorld.dependencies[index])) }
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

  var state: [AnyHashable] {
    [
      core.lifecycle.phase, isCancelled, core.ledger.remaining, core.ledger.isClosed, core.bridge.record,
      core.bridge.openingGates, gates.firstIndex { $0 === core.bridge.gate }, books, deeds,
    ]
  }

  var isCancelled: Bool { core.lifecycle.isCancelled }

  var isStarted: Bool { !core.lifecycle.phase.isPending }

  /// Whether nothing is waited for, or that does not matter any more.
  var isDue: Bool { !core.isBlocked || isCancelled }

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
    let bridge = core.bridge
    promise(core.ledger.remaining >= 0, "it counts below zero")
    promise(bridge.openingGates >= 0, "more gates were opened than there are")
    promise(books.unfinished >= 0, "Foundation counts below zero")
    let isGated = bridge.gate != nil || bridge.isOpening
    promise(!isGated || bridge.record == .waiting || bridge.record == .outdated, "a gate, and the record is trusted")
    promise(bridge.gate == nil || core.isBlocked || isStarted, "a gate is closed, and nothing is waited for")
    promise(!core.ledger.isWaiting || core.isBlocked || isStarted, "it is ready though it waits")
    let executes = core.lifecycle.phase == .executing
    promise(!executes || core.keys == nil || deeds.turn == .holding, "it executes without its keys")
  }

  var breachAtEnd: String? {
    if core.bridge.openingGates > 0 { return "a gate is being opened for ever" }
    let hasTurn = core.keys == nil || deeds.isKeyFree || isCancelled
    if deeds.listed.isEmpty, hasTurn, !isDue, !core.ledger.isClosed, core.lifecycle.phase != .pending(.groupStart) {
      return "it waits for \(core.ledger.remaining), which is nothing"
    }
    if deeds.turn == .holding, core.lifecycle.phase.isPending, !isCancelled {
      return "it holds keys and is not started"
    }
    if isMember { return hasTurn && isDue && !isStarted && !isCancelled ? "it is never started" : nil }
    if isDue, !isStarted, !books.isReady { return "Foundation does not know that it is ready" }
    if isDue, books.place == .enqueued { return "a wake-up was lost" }
    if books.place == .dispatched, !deeds.isSettled { return "it was run, and does not end" }
    return nil
  }
}
