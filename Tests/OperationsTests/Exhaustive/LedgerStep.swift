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
  // The turn.
  case requestTurn, groupStart, arrive, leaveWaitQueues, checkWaitQueues, free, steal, call
  case take, proceed
  // The turn of a member.
  case takeWithSlot, startMember, giveBack, requestSlotAgain
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
    case .awaitGate: !world.core.bridge.isOpening
    // The thread that starts it by hand has seen that they have finished.
    case .start(byHand: true): world.deeds.finished == [0, 1] || world.isCancelled
    default: true
    }
  }

  func perform(in world: inout LedgerWorld, by actor: inout Actor) {
    switch self {
    // The count.
    case .dependencyFinishes(let index):
      world.deeds.finished.insert(index)
      if world.deeds.listed.remove(index) != nil { actor.go(on: .countDown) }
    case .countDown: change(&world, &actor) { $0.countDown(by: 1) }
    case .gateDidOpen:
      actor.isInside = false
      let (nudges, _, action) = world.core.gateDidOpen()
      carryOut(action, &world, &actor)
      if nudges { actor.go(on: .nudge, .noteAndTell) }
    case .add(let index):
      guard !world.isStarted else { return }
      let action = world.core.add(.own(LedgerWorld.dependencies[index]))
      actor.go(on: .enlist(index))
      carryOut(action, &world, &actor)
      if let gate = world.core.bridge.makeGateIfRead() {
        actor.go(on: .giveGate(world.enter(gate)), .recheckReadiness)
      }
    case .enlist(let index):
      if world.deeds.finished.contains(index) {
        actor.go(on: .countDown)
      } else {
        world.deeds.listed.insert(index)
      }
    case .unlist(let index):
      _ = world.core.ledger.remove(LedgerWorld.dependencies[index])
      if world.deeds.listed.remove(index) != nil { actor.go(on: .countDown) }
    case .makeGate:
      if let gate = world.core.makeGateIfWaiting() { actor.go(on: .giveGate(world.enter(gate))) }
    case .recheckReadiness:
      let (isWaiting, isCancelled) = (world.core.isBlocked, world.isCancelled)
      guard !world.isStarted, world.core.bridge.recheck(isWaiting: isWaiting, isCancelled: isCancelled) else { return }
      actor.go(on: .nudgeIfReady)
    case .nudgeIfReady: if world.books.isReady { actor.go(on: .nudge, .noteAndTell) }
    case .cancel:
      guard !world.isCancelled, !world.deeds.isSettled else { return }
      _ = world.core.lifecycle.cancel()
      if world.deeds.turn != .holding { world.deeds.turn = .over }
      actor.go(on: .cancelBooks)

    // The start.
    case .start(let isByHand):
      if !world.isDue {
        // All have finished, and not all have said so. A queue may also start what has just gained a dependency.
        guard isByHand else { return goOn(&world, &actor) }
        actor.go(on: self)
        change(&world, &actor) { $0.countDown(by: $0.ledger.remaining) }
      } else if !world.core.isSatisfied, !world.isCancelled {
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
      if world.isCancelled, !world.books.isCancelled || !world.books.isReady { actor.go(on: .cancelBooks) }
    case .close: close(&world)

    // The turn.
    case .requestTurn: change(&world, &actor) { $0.waitForKeysInQueue() }
    case .groupStart: change(&world, &actor) { $0.groupDidStart($0.engine) }
    case .arrive:
      if world.deeds.turn == .idle {
        world.deeds.turn = .waiting
        if world.deeds.isKeyFree { turnComes(&world, &actor) }
      } else if world.deeds.turn == .called, !world.isMember {
        actor.go(on: .call)
      }
    case .leaveWaitQueues:
      // A member that holds its keys is about to be started, which fails.
      let isWaiting = world.deeds.turn != .over && !(world.isMember && world.deeds.turn == .holding)
      if isWaiting, !world.deeds.waitsStarted { world.deeds.turn = .idle }
      actor.go(on: world.isMember ? .requestSlotAgain : .checkWaitQueues)
    case .checkWaitQueues: if world.core.lifecycle.phase == .pending(.keys) { actor.go(on: .arrive) }
    case .free:
      world.deeds.isKeyFree = true
      guard world.deeds.turn == .waiting else { return }
      if !world.deeds.waitsStarted { return turnComes(&world, &actor) }
      world.deeds.turn = .holding
      actor.go(on: .call)
    case .steal: if world.deeds.turn != .holding { world.deeds.isKeyFree = false }
    case .call:
      let holdsKeys = world.deeds.waitsStarted && world.deeds.turn == .holding
      change(&world, &actor) { $0.keysAreFree(areHeld: holdsKeys) }
    case .takeWithSlot:
      guard world.deeds.turn == .called else { return }
      world.deeds.turn = world.deeds.isKeyFree ? .holding : .waiting
      if world.deeds.turn == .holding { actor.go(on: .startMember) }
    case .startMember:
      switch world.core.start(by: nil, hasSlot: true) {
      case .execute, .skip: close(&world)
      case .ignore: actor.go(on: .giveBack)
      default: world.promise(false, "it cannot be started")
      }
    case .giveBack:
      if world.deeds.turn == .holding { world.deeds.turn = .idle }
      actor.go(on: .requestSlotAgain)
    case .requestSlotAgain: change(&world, &actor) { $0.requestSlotAgain() }
    case .take:
      world.deeds.waitsStarted = world.isStarted
      if world.deeds.turn == .holding || world.deeds.turn == .over { return }
      world.deeds.turn = world.deeds.isKeyFree ? .holding : .waiting
      if world.deeds.turn == .holding { actor.go(on: .proceed) }
    case .proceed: _ = world.core.lifecycle.resume(after: .keys)

    // Foundation's part, read off swift-corelibs-foundation's `Operation.swift`.
    case .ask, .nudge:
      if world.isCancelled || world.isStarted { return actor.go(on: .askOwn) }
      let isWaiting = world.core.isBlocked
      switch world.core.bridge.check(isWaiting: isWaiting, isOpener: actor.isInside, isNudge: self == .nudge) {
      case .leftToFoundation: actor.go(on: .askOwn)
      case .overlooked:
        actor.spawn([.recheckReadiness])
        actor.go(on: .askOwn)
      case .waiting(newGate: nil): actor.answer = false
      case .waiting(let gate?): actor.go(on: .giveGate(world.enter(gate)), .recheckReadiness, .askAgain)
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

  private func change(
    _ world: inout LedgerWorld,
    _ actor: inout Actor,
    _ change: (inout OperationCore) -> OperationCore.WaitAction
  ) {
    let before = world.core
    let action = change(&world.core)
    switch action {
    // A runner may be about to start it, which then takes it first.
    case .notify where world.isMember && !before.isBlocked: break
    case .open, .notify:
      world.promise(before.isBlocked || before.lifecycle.phase == .suspended(.keys), "it became ready a second time")
      world.promise(world.deeds.listed.isEmpty, "it became ready though it waits for something")
    case .enterWaitQueues: world.promise(world.core.lifecycle.phase == .pending(.keys), "it requests while it waits")
    case .none, .leaveWaitQueues, .notifyOfCancellation, .startInside, .resume, .prepareInputs: break
    }
    carryOut(action, &world, &actor)
  }

  private func carryOut(_ action: OperationCore.WaitAction, _ world: inout LedgerWorld, _ actor: inout Actor) {
    switch action {
    case .none, .notifyOfCancellation, .startInside, .resume: break
    case .enterWaitQueues: actor.go(on: .arrive)
    case .leaveWaitQueues: actor.go(on: .leaveWaitQueues)
    case .open(let gate): actor.go(on: .openGate(world.index(of: gate)), .gateDidOpen)
    case .notify: if world.isMember { actor.go(on: .arrive) }
    case .prepareInputs:
      if world.core.lifecycle.resume(after: .keys) { close(&world) }
    }
  }

  private func turnComes(_ world: inout LedgerWorld, _ actor: inout Actor) {
    world.deeds.turn = world.takesSlot ? .holding : .called
    if world.isMember { return actor.spawn([world.takesSlot ? .startMember : .takeWithSlot]) }
    actor.go(on: .call)
    // A call that was made earlier may arrive late.
    actor.spawn([.call])
  }

  private func goOn(_ world: inout LedgerWorld, _ actor: inout Actor) {
    world.promise(!world.isStarted, "it was started twice")
    let action = world.core.start()
    if world.books.place == .outside { return actor.go(on: .conclude) }
    // In a queue nothing stands in its way any more.
    world.books.place = .finished
    if case .takeKeys = action { actor.go(on: .take) } else { close(&world) }
  }

  private func close(_ world: inout LedgerWorld) {
    _ = world.core.ledger.takeDependencies()
    _ = world.core.ledger.close()
    _ = world.core.bridge.close()
    world.deeds.isSettled = true
  }

  /// Foundation's check of readiness. It reads the answer and records it in two steps.
  private func look(_ actor: inout Actor) { actor.go(on: .ask, .noteAndTell) }

  /// Under the lock of the queue.
  private func schedule(_ world: inout LedgerWorld, _ actor: inout Actor) {
    guard world.books.place == .enqueued else { return }
    if world.books.isReadyNoted {
      world.books.place = .dispatched
      world.promise(world.isDue || world.mayBeLate, "it is run though it waits")
      actor.spawn([.start(byHand: false)])
    } else if world.books.isReady {
      actor.go(on: .ask, .noteRetest)
    }
  }
}
