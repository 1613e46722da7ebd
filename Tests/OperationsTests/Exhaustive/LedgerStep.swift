import Foundation

@testable import Operations

/// What is done with a ledger: each step is one critical section of the operation's, or one of Foundation's.
enum LedgerStep: InterleavedStep {
  typealias Actor = InterleavedActor<Self>

  // Ours.
  case dependencyFinishes(Int)
  case countDown, gateDidOpen
  case add(Int)
  case enlist(Int)
  case unlist(Int)
  case makeGate, recheckReadiness, nudgeIfReady, cancel
  case start(byHand: Bool)
  case startIfReady(byHand: Bool)
  case awaitGate(byHand: Bool)
  case conclude, close
  // The permit.
  case withholdPermit, requirePermit, updatePermit, request, withdraw, returnPermit, free, grant
  case checkPermit(DependencyLedger.Permit)
  // Foundation's.
  case ask, nudge, askOwn, askAgain, note, noteAndTell, tellQueue, noteRetest
  case giveGate(Int)
  case openGate(Int)
  case passGate
  case adopt, attach, schedule
  case cancelBooks, emptyBooks, superStart

  /// `addOperation`, the package's method or Foundation's own.
  static let enqueue: [Self] = [.makeGate] + plainEnqueue + [.recheckReadiness]
  static let plainEnqueue: [Self] = [.ask, .note, .adopt, .attach, .schedule]

  func isPossible(in world: LedgerWorld) -> Bool {
    switch self {
    case .awaitGate: !world.bridge.isOpening
    // The thread that starts it by hand has seen that they have finished.
    case .start(byHand: true): world.deeds.finished == [0, 1] || world.deeds.isCancelled
    default: true
    }
  }

  func perform(in world: inout LedgerWorld, by actor: inout Actor) {
    switch self {
    // The count.
    case .dependencyFinishes(let index):
      world.deeds.finished.insert(index)
      if world.deeds.listed.remove(index) != nil { actor.go(on: .countDown) }
    case .countDown: changeCount(&world, &actor) { $0.countDown() }
    case .gateDidOpen:
      actor.isInside = false
      if world.bridge.gateDidOpen(isWaiting: world.ledger.isWaiting) { actor.go(on: .nudge, .noteAndTell) }
    case .add(let index):
      guard !world.deeds.isStarted else { return }
      world.ledger.add(.own(LedgerWorld.dependencies[index]))
      actor.go(on: .enlist(index))
      if world.ledger.permit == .due { actor.go(on: .updatePermit) }
      if let gate = world.bridge.makeGateIfRead() {
        actor.go(on: .giveGate(world.enter(gate)), .recheckReadiness)
      }
    case .enlist(let index):
      if world.deeds.finished.contains(index) {
        actor.go(on: .countDown)
      } else {
        world.deeds.listed.insert(index)
      }
    case .unlist(let index):
      _ = world.ledger.remove(LedgerWorld.dependencies[index])
      if world.deeds.listed.remove(index) != nil { actor.go(on: .countDown) }
    case .makeGate:
      guard world.ledger.isWaiting, let gate = world.bridge.makeGate() else { return }
      actor.go(on: .giveGate(world.enter(gate)))
    case .recheckReadiness:
      let (isWaiting, isCancelled) = (world.ledger.isWaiting, world.deeds.isCancelled)
      guard !world.deeds.isStarted, world.bridge.recheck(isWaiting: isWaiting, isCancelled: isCancelled) else { return }
      actor.go(on: .nudgeIfReady)
    case .nudgeIfReady: if world.books.isReady { actor.go(on: .nudge, .noteAndTell) }
    case .cancel:
      guard !world.deeds.isCancelled, !world.deeds.isSettled else { return }
      world.deeds.isCancelled = true
      if world.deeds.permit != .granted { world.deeds.permit = .over }
      actor.go(on: .cancelBooks)

    // The start.
    case .start(let isByHand):
      if !world.isDue {
        // All have finished, and not all have said so. A queue may also start what has just gained a dependency.
        guard isByHand else { return goOn(&world, &actor) }
        actor.go(on: self)
        world.ledger.endCounting()
        if let gate = world.bridge.takeGate() { open(gate, &world, &actor) }
      } else if world.ledger.isWaiting || world.bridge.isOpening, !world.deeds.isCancelled {
        actor.go(on: .startIfReady(byHand: isByHand))
      } else {
        goOn(&world, &actor)
      }
    case .startIfReady(let isByHand):
      let mayStart = world.books.isReady && (!isByHand || world.books.hasQueue)
      if mayStart { goOn(&world, &actor) } else { actor.go(on: .awaitGate(byHand: isByHand)) }
    case .awaitGate(let isByHand): actor.go(on: .start(byHand: isByHand))
    case .conclude:
      // A cancelled operation is ready in Foundation's books only after its own `cancel()`.
      actor.go(on: .superStart, .close)
      if world.deeds.isCancelled, !world.books.isCancelled || !world.books.isReady { actor.go(on: .cancelBooks) }
    case .close: close(&world)

    // The permit.
    case .requirePermit:
      if world.deeds.isCancelled { return }
      world.deeds.isInPlace = true
      changeCount(&world, &actor) { $0.requirePermit() }
      if world.ledger.isWaiting, let gate = world.bridge.makeGateIfRead() {
        actor.go(on: .giveGate(world.enter(gate)))
      }
    case .withholdPermit: world.ledger.withholdPermit()
    case .updatePermit: update(world.ledger.permit, &actor)
    case .checkPermit(let old): if world.ledger.permit != old { update(world.ledger.permit, &actor) }
    case .request:
      if world.deeds.permit == .idle { world.deeds.permit = world.deeds.isKeyFree ? .granted : .waiting }
      if world.deeds.permit == .granted { actor.go(on: .grant) }
    case .withdraw:
      if !world.deeds.isStarted, world.deeds.permit != .over { world.deeds.permit = .idle }
    case .returnPermit:
      // A member was passed, and its group starts it now.
      guard world.isDue, world.deeds.permit == .granted, !world.deeds.isCancelled else { return }
      world.deeds.isKeyFree = false
      world.deeds.permit = .waiting
      world.ledger.returnPermit()
      actor.go(on: .updatePermit)
    case .free:
      world.deeds.isKeyFree = true
      guard world.deeds.permit == .waiting else { return }
      world.deeds.permit = .granted
      actor.go(on: .grant)
      // Both the operation that leaves and one that has come and gone before it may grant the permit.
      actor.spawn([.grant])
    case .grant: changeCount(&world, &actor) { $0.grantPermit() }

    // Foundation's part, read off swift-corelibs-foundation's `Operation.swift`.
    case .ask, .nudge:
      if world.deeds.isCancelled || world.deeds.isStarted { return actor.go(on: .askOwn) }
      let isWaiting = world.ledger.isWaiting
      switch world.bridge.check(isWaiting: isWaiting, isOpener: actor.isInside, isNudge: self == .nudge) {
      case .leftToFoundation: actor.go(on: .askOwn)
      case .overlooked:
        actor.spawn([.recheckReadiness])
        actor.go(on: .askOwn)
      case .waiting: actor.answer = false
      case .waitingBehindNew(let gate): actor.go(on: .giveGate(world.enter(gate)), .recheckReadiness, .askAgain)
      }
    case .askOwn: actor.answer = world.books.isReady
    case .askAgain:
      actor.answer = world.isDue
      if actor.answer { actor.go(on: .askOwn) }
    case .note, .noteAndTell, .noteRetest:
      if actor.answer || self != .noteRetest { world.books.isReadyNoted = actor.answer }
      if actor.answer, self == .noteAndTell { actor.go(on: .tellQueue) }
      actor.answer = false
    case .tellQueue: if world.books.hasQueue { schedule(&world, &actor) }
    case .giveGate(let index):
      if !world.books.gates[index].isOpen, !world.books.isCancelled {
        world.books.unfinished += 1
        world.books.gates[index].isWaitedFor = true
      }
      look(&actor)
    case .openGate(let index):
      actor.isInside = true
      world.promise(!world.books.gates[index].isOpen, "a gate was opened twice")
      world.books.gates[index].isOpen = true
      // Only the last of several dependencies is distinguished.
      guard world.books.gates[index].isWaitedFor else { return }
      if world.books.unfinished == 1 { actor.go(on: .passGate) }
      if world.books.unfinished > 1 { world.books.unfinished -= 1 }
    case .passGate:
      if world.books.unfinished >= 1 { world.books.unfinished -= 1 }
      look(&actor)
    case .adopt: world.books.hasQueue = true
    case .attach: world.books.place = .enqueued
    case .schedule: schedule(&world, &actor)
    case .cancelBooks:
      if world.books.place == .finished { return }
      world.books.isCancelled = true
      actor.go(on: .emptyBooks)
    case .emptyBooks:
      world.books.unfinished = 0
      look(&actor)
    case .superStart:
      world.promise(world.books.place == .dispatched || world.books.isReady, "Foundation refuses to start it")
      world.promise(world.books.place != .finished, "Foundation has finished it before")
      world.books.place = .finished
    }
  }

  private func changeCount(
    _ world: inout LedgerWorld,
    _ actor: inout Actor,
    _ change: (inout DependencyLedger) -> DependencyLedger.CountAction?
  ) {
    let before = world.ledger
    let action = change(&world.ledger)
    let isZero = before.remaining > 0 && world.ledger.remaining == 0
    switch action {
    case .becomeReady:
      world.promise(isZero && !before.isClosed, "it became ready a second time, or after its end")
      world.promise(world.deeds.listed.isEmpty, "it became ready though it waits for something")
      world.promise(!world.ledger.isPermitPending, "it became ready without a permit")
      if let gate = world.bridge.takeGate() { open(gate, &world, &actor) }
    case .requestPermit:
      world.promise(world.ledger.remaining == 1 && world.ledger.permit == .requested, "it requests while it waits")
      world.promise(
        before.permit == .withheld || before.permit == .due || before.permit == .notNeeded,
        "it requests twice"
      )
      actor.go(on: .updatePermit)
    case nil: world.promise(!isZero, "it became ready, and nothing was notified")
    }
  }

  private func update(_ permit: DependencyLedger.Permit, _ actor: inout Actor) {
    switch permit {
    case .notNeeded, .granted: return
    case .withheld, .due: actor.go(on: .withdraw, .checkPermit(permit))
    case .requested: actor.go(on: .request, .checkPermit(permit))
    }
  }

  private func open(_ gate: Operation, _ world: inout LedgerWorld, _ actor: inout Actor) {
    actor.go(on: .openGate(world.index(of: gate)), .gateDidOpen)
  }

  private func goOn(_ world: inout LedgerWorld, _ actor: inout Actor) {
    world.promise(!world.deeds.isStarted, "it was started twice")
    world.deeds.isStarted = true
    if world.books.place == .outside { return actor.go(on: .conclude) }
    // In a queue nothing stands in its way any more.
    world.books.place = .finished
    close(&world)
  }

  private func close(_ world: inout LedgerWorld) {
    _ = world.ledger.takeDependencies()
    _ = world.ledger.close()
    world.bridge.close()
    world.deeds.isSettled = true
  }

  /// Foundation's check of readiness. It reads the answer and records it in two steps.
  private func look(_ actor: inout Actor) { actor.go(on: .ask, .noteAndTell) }

  /// Under the lock of the queue.
  private func schedule(_ world: inout LedgerWorld, _ actor: inout Actor) {
    guard world.books.place == .enqueued else { return }
    if world.books.isReadyNoted {
      world.books.place = .dispatched
      world.promise(world.isDue || world.mayBeLate, "it is run though it waits for \(world.ledger.remaining)")
      world.promise(!world.ledger.isPermitPending || world.deeds.isCancelled, "it is run without a permit")
      actor.spawn([.start(byHand: false)])
    } else if world.books.isReady {
      actor.go(on: .ask, .noteRetest)
    }
  }
}
