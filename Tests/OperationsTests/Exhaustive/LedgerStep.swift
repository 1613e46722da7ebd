import Foundation

@testable import Operations

/// What is done with a ledger: each step is one critical section of the operation's, or one of Foundation's.
enum LedgerStep: InterleavedStep {
  // Ours.
  case dependencyFinishes(Int)
  case countDown, gateDidOpen
  case add(Int)
  case enlist(Int)
  case unlist(Int)
  case makeGate, lookAgain, nudgeIfReady
  case cancel
  case start, startIfReady, awaitGate, startByHand, startByHandIfReady, awaitGateByHand, conclude, close
  // The permit.
  case requirePermit, request, takeBackIfTooEarly, postpone, postponePermit, free, grant
  // Foundation's.
  case ask, nudge, askOwn, askAgain, note, noteAndTell, tellQueue, noteRetest
  case giveGate(Int)
  case openGate(Int)
  case passGate
  case adopt, attach, schedule
  case cancelBooks, emptyBooks, superStart

  /// What Foundation does when something may have become ready. It asks and notes the answer in two steps.
  static func look(_ actor: inout InterleavedActor<Self>) { actor.go(on: .ask, .noteAndTell) }

  /// `addOperation`, of the toolkit's verb or of Foundation's own spelling.
  static let enqueue: [Self] = [.makeGate] + plainEnqueue + [.lookAgain]
  static let plainEnqueue: [Self] = [.ask, .note, .adopt, .attach, .schedule]

  func isPossible(in world: LedgerWorld) -> Bool {
    switch self {
    case .awaitGate, .awaitGateByHand: !world.ledger.isOpeningGate
    // Whoever starts it by hand has seen that they have finished.
    case .startByHand: world.deeds.finished == [.one(0), .one(1)] || world.deeds.isCancelled
    default: true
    }
  }

  func perform(in world: inout LedgerWorld, by actor: inout InterleavedActor<Self>) {
    switch self {
    case .dependencyFinishes, .countDown, .gateDidOpen, .add, .enlist, .unlist, .makeGate, .lookAgain,
      .nudgeIfReady, .cancel:
      count(&world, &actor)
    case .start, .startIfReady, .awaitGate, .startByHand, .startByHandIfReady, .awaitGateByHand, .conclude, .close:
      start(&world, &actor)
    case .requirePermit, .request, .takeBackIfTooEarly, .postpone, .postponePermit, .free, .grant:
      permit(&world, &actor)
    case .ask, .nudge, .askOwn, .askAgain, .note, .noteAndTell, .tellQueue, .noteRetest: look(&world, &actor)
    case .giveGate, .openGate, .passGate, .adopt, .attach, .schedule, .cancelBooks, .emptyBooks, .superStart:
      keepBooks(&world, &actor)
    }
    world.check()
  }

  // MARK: The count

  private func count(_ world: inout LedgerWorld, _ actor: inout InterleavedActor<Self>) {
    switch self {
    case .dependencyFinishes(let index):
      world.deeds.finished.insert(.one(index))
      if world.deeds.listed.remove(.one(index)) != nil { actor.go(on: .countDown) }
    case .countDown: changeCount(&world, &actor) { $0.countDown() }
    case .gateDidOpen:
      actor.isInside = false
      if world.ledger.gateDidOpen() { nudge(&actor) }
    case .add(let index):
      guard !world.deeds.isStarted else { return }
      let isAsking = world.ledger.permit == .requested
      let gate = world.ledger.add(.own(LedgerWorld.dependencies[index]))
      actor.go(on: .enlist(index))
      if isAsking { actor.go(on: .postpone) }
      if let gate { actor.go(on: .giveGate(world.enter(gate)), .lookAgain) }
    case .enlist(let index):
      if world.deeds.finished.contains(.one(index)) {
        actor.go(on: .countDown)
      } else {
        world.deeds.listed.insert(.one(index))
      }
    case .unlist(let index):
      _ = world.ledger.remove(LedgerWorld.dependencies[index])
      if world.deeds.listed.remove(.one(index)) != nil { actor.go(on: .countDown) }
    case .makeGate: if let gate = world.ledger.makeGate() { actor.go(on: .giveGate(world.enter(gate))) }
    case .lookAgain:
      guard !world.deeds.isStarted, world.ledger.lookAgain(isCancelled: world.deeds.isCancelled) else { return }
      actor.go(on: .nudgeIfReady)
    case .nudgeIfReady: if world.books.isReady { nudge(&actor) }
    default:
      guard !world.deeds.isCancelled, !world.deeds.isSettled else { return }
      world.deeds.isCancelled = true
      if world.deeds.permit != .granted { world.deeds.permit = .over }
      actor.go(on: .cancelBooks)
    }
  }

  private func nudge(_ actor: inout InterleavedActor<Self>) { actor.go(on: .nudge, .noteAndTell) }

  private func changeCount(
    _ world: inout LedgerWorld,
    _ actor: inout InterleavedActor<Self>,
    _ change: (inout DependencyLedger) -> DependencyLedger.CountAction
  ) {
    let before = world.ledger
    let action = change(&world.ledger)
    let isZero = before.remaining > 0 && world.ledger.remaining == 0
    switch action {
    case .becomeReady(let gate):
      world.promise(isZero && !before.isClosed, "it became ready a second time, or after its end")
      world.promise(world.deeds.listed.isEmpty, "it became ready though it waits for something")
      world.promise(world.isPermitted, "it became ready without a permit")
      if let gate { actor.go(on: .openGate(world.index(of: gate)), .gateDidOpen) }
    case .ask:
      world.promise(world.ledger.remaining == 1 && world.ledger.permit == .requested, "it requests while it waits")
      world.promise(before.permit != .requested || self == .postponePermit, "it requests twice")
      actor.go(on: .request, .takeBackIfTooEarly)
    case .keepWaiting, .ignore: world.promise(!isZero, "it became ready, and nobody was told")
    }
  }

  // MARK: The start

  private func start(_ world: inout LedgerWorld, _ actor: inout InterleavedActor<Self>) {
    switch self {
    case .start, .startByHand:
      let isByHand = self == .startByHand
      if !world.isDue {
        // All have finished, and not all have said so. A queue may also start what has just gained a dependency.
        guard isByHand else { return goOn(&world, &actor) }
        actor.go(on: .startByHand)
        if let gate = world.ledger.waitNoMore() { open(gate, &world, &actor) }
      } else if !world.ledger.isSatisfied, !world.deeds.isCancelled {
        actor.go(on: isByHand ? .startByHandIfReady : .startIfReady)
      } else {
        goOn(&world, &actor)
      }
    case .startIfReady: if world.books.isReady { goOn(&world, &actor) } else { actor.go(on: .awaitGate) }
    case .startByHandIfReady:
      if world.books.hasQueue, world.books.isReady { goOn(&world, &actor) } else { actor.go(on: .awaitGateByHand) }
    case .awaitGate: actor.go(on: .start)
    case .awaitGateByHand: actor.go(on: .startByHand)
    case .conclude:
      // A cancelled operation is ready in Foundation's books only after its own `cancel()`.
      actor.go(on: .superStart, .close)
      if world.deeds.isCancelled, !world.books.isCancelled || !world.books.isReady { actor.go(on: .cancelBooks) }
    default:
      _ = world.ledger.close()
      world.deeds.isSettled = true
    }
  }

  private func goOn(_ world: inout LedgerWorld, _ actor: inout InterleavedActor<Self>) {
    world.promise(!world.deeds.isStarted, "it was started twice")
    world.deeds.isStarted = true
    if world.books.place == .outside { return actor.go(on: .conclude) }
    // In a queue nothing stands in its way any more.
    world.books.place = .finished
    _ = world.ledger.close()
    world.deeds.isSettled = true
  }

  func open(_ gate: Operation, _ world: inout LedgerWorld, _ actor: inout InterleavedActor<Self>) {
    actor.go(on: .openGate(world.index(of: gate)), .gateDidOpen)
  }

  // MARK: The permit

  private func permit(_ world: inout LedgerWorld, _ actor: inout InterleavedActor<Self>) {
    switch self {
    case .requirePermit:
      if world.deeds.isCancelled { return }
      world.deeds.isInPlace = true
      var gate: Operation?
      changeCount(&world, &actor) { ledger in
        let (new, action) = ledger.requirePermit()
        gate = new
        return action
      }
      if let gate { actor.go(on: .giveGate(world.enter(gate))) }
    case .request:
      world.promise(![.waiting, .granted].contains(world.deeds.permit), "it requests what it has requested")
      guard world.deeds.permit == .idle else { return }
      world.deeds.permit = world.deeds.isKeyFree ? .granted : .waiting
      if world.deeds.isKeyFree { actor.go(on: .grant) }
    case .takeBackIfTooEarly:
      if world.ledger.permit == .requested, world.ledger.remaining > 1 { actor.go(on: .postpone) }
    case .postpone:
      guard world.deeds.permit == .waiting else { return }
      world.deeds.permit = .idle
      actor.go(on: .postponePermit)
    case .postponePermit: changeCount(&world, &actor) { $0.postponePermit() }
    case .free:
      world.deeds.isKeyFree = true
      guard world.deeds.permit == .waiting else { return }
      world.deeds.permit = .granted
      actor.go(on: .grant)
      // It may be told twice: by the one who leaves, and by the one who has come and gone before it.
      actor.spawn([.grant])
    default: changeCount(&world, &actor) { $0.grantPermit() }
    }
  }
}
