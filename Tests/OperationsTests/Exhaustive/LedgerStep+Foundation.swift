@testable import Operations

/// Foundation's part, read off swift-corelibs-foundation's `Operation.swift`.
extension LedgerStep {
  /// `isReady`, and what Foundation does with the answer.
  func look(_ world: inout LedgerWorld, _ actor: inout InterleavedActor<Self>) {
    switch self {
    case .ask, .nudge:
      if world.deeds.isCancelled || world.deeds.isStarted { return actor.go(on: .askOwn) }
      switch world.ledger.readiness(byOpener: actor.isInside, byNudge: self == .nudge) {
      case .leftToFoundation: actor.go(on: .askOwn)
      case .overlooked:
        actor.spawn([.lookAgain])
        actor.go(on: .askOwn)
      case .waiting: actor.answer = false
      case .waitingBehindNew(let gate): actor.go(on: .giveGate(world.enter(gate)), .lookAgain, .askAgain)
      }
    case .askOwn: actor.answer = world.books.isReady
    case .askAgain:
      actor.answer = world.isDue
      if actor.answer { actor.go(on: .askOwn) }
    case .note:
      world.books.isReadyNoted = actor.answer
      actor.answer = false
    case .noteAndTell:
      world.books.isReadyNoted = actor.answer
      if actor.answer { actor.go(on: .tellQueue) }
      actor.answer = false
    case .tellQueue: if world.books.hasQueue { schedule(&world, &actor) }
    default:
      if actor.answer { world.books.isReadyNoted = true }
      actor.answer = false
    }
  }

  func keepBooks(_ world: inout LedgerWorld, _ actor: inout InterleavedActor<Self>) {
    switch self {
    case .giveGate(let index):
      if !world.books.gates[index].isOpen, !world.books.isCancelled {
        world.books.unfinished += 1
        world.books.gates[index].isWaitedFor = true
      }
      LedgerStep.look(&actor)
    case .openGate(let index):
      actor.isInside = true
      world.promise(!world.books.gates[index].isOpen, "a gate was opened twice")
      world.books.gates[index].isOpen = true
      // Of several, only the last one is told apart.
      guard world.books.gates[index].isWaitedFor else { return }
      if world.books.unfinished == 1 { actor.go(on: .passGate) }
      if world.books.unfinished > 1 { world.books.unfinished -= 1 }
    case .passGate:
      if world.books.unfinished >= 1 { world.books.unfinished -= 1 }
      LedgerStep.look(&actor)
    case .adopt: world.books.hasQueue = true
    case .attach: world.books.place = .enqueued
    case .schedule: schedule(&world, &actor)
    case .cancelBooks:
      if world.books.place == .finished { return }
      world.books.isCancelled = true
      actor.go(on: .emptyBooks)
    case .emptyBooks:
      world.books.unfinished = 0
      LedgerStep.look(&actor)
    default:
      world.promise(world.books.place == .dispatched || world.books.isReady, "Foundation refuses to start it")
      world.promise(world.books.place != .finished, "Foundation has finished it before")
      world.books.place = .finished
    }
  }

  /// Under the lock of the queue.
  private func schedule(_ world: inout LedgerWorld, _ actor: inout InterleavedActor<Self>) {
    guard world.books.place == .enqueued else { return }
    if world.books.isReadyNoted {
      world.books.place = .dispatched
      world.willRun()
      actor.spawn([.start])
    } else if world.books.isReady {
      actor.go(on: .ask, .noteRetest)
    }
  }
}
