import Soak
import Testing

@testable import Operations

/// The ledger next to Foundation's books, with every order of the critical sections of those who use them at once.
struct LedgerInterleavingTests {
  private typealias Walk = Interleavings<LedgerStep>

  private let first: [LedgerStep] = [.dependencyFinishes(0)]
  private let second: [LedgerStep] = [.dependencyFinishes(1)]

  @Test(arguments: [LedgerStep.enqueue, LedgerStep.plainEnqueue])
  func whatIsEnqueuedWhileItsDependenciesFinishIsRunAndNotTooEarly(enqueue: [LedgerStep]) {
    var walk = Walk()
    walk.walk(LedgerWorld(waitingFor: 1), ["first": first, "queue": enqueue])
    walk.walk(LedgerWorld(waitingFor: 2), ["first": first, "second": second, "queue": enqueue])
    // One of them never finishes.
    walk.walk(LedgerWorld(waitingFor: 2), ["first": first, "queue": enqueue, "asker": [.ask]])
    walk.expectSuccess(states: 3_000, schedules: 40_000_000_000)
  }

  // Foundation's own spelling, without the look afterwards, leaves two gaps that a third thread can open: as for
  // Foundation's own operations, an answer may be noted by the one who enqueues after the operation has been cancelled;
  // or has become ready, if somebody asked in between. So what follows goes for the verbs.

  @Test func whoAsksInBetweenLosesNoWakeUp() {
    var walk = Walk()
    let world = LedgerWorld(waitingFor: 1)
    let queue = LedgerStep.plainEnqueue + [.lookAgain]
    walk.walk(world.after([.makeGate]), ["first": first, "queue": queue, "asker": [.ask]])
    walk.walk(world.after(LedgerStep.enqueue), ["first": first, "asker": [.ask], "second asker": [.ask]])
    walk.expectSuccess(states: 8_000, schedules: 100_000_000_000_000)
  }

  @Test func whatIsCancelledInBetweenIsRun() {
    var walk = Walk()
    let queue = LedgerStep.plainEnqueue + [.lookAgain]
    walk.walk(LedgerWorld(waitingFor: 1).after([.makeGate]), ["first": first, "queue": queue, "canceller": [.cancel]])
    let world = LedgerWorld(waitingFor: 2).after(LedgerStep.enqueue)
    walk.walk(world, ["first": first, "asker": [.ask], "canceller": [.cancel]])
    walk.expectSuccess(states: 20_000, schedules: 20_000_000_000_000_000)
  }

  @Test func aDependencyThatIsRemovedInBetweenIsCountedOnce() {
    var walk = Walk()
    for enqueue in [LedgerStep.enqueue, LedgerStep.plainEnqueue] {
      walk.walk(LedgerWorld(waitingFor: 1), ["first": first, "queue": enqueue, "remover": [.unlist(0)]])
      walk.walk(LedgerWorld(waitingFor: 2), ["first": first, "queue": enqueue, "remover": [.unlist(1)]])
    }
    walk.expectSuccess(states: 18_000, schedules: 40_000_000_000_000)
  }

  @Test func aDependencyThatIsAddedInBetweenLosesNoWakeUp() {
    var walk = Walk()
    let world = LedgerWorld(waitingFor: 1, mayBeLate: true)
    let adder: [LedgerStep] = [.add(1), .dependencyFinishes(1)]
    walk.walk(world.after(LedgerStep.enqueue), ["first": first, "adder": adder])
    walk.walk(world.after(LedgerStep.plainEnqueue), ["first": first, "adder": adder])
    walk.expectSuccess(states: 900, schedules: 900_000)
  }

  /// Nobody has begun to be too late: the one that finishes does so after the other has been added.
  @Test func aDependencyThatIsAddedInTimeIsWaitedFor() {
    var walk = Walk()
    let adder: [LedgerStep] = [.add(1)]
    walk.walk(LedgerWorld(waitingFor: 1), ["adder": adder + first, "queue": LedgerStep.enqueue])
    walk.walk(LedgerWorld(waitingFor: 1), ["adder": adder + first, "queue": LedgerStep.enqueue, "second": second])
    walk.expectSuccess(states: 3_500, schedules: 60_000_000_000_000)
  }

  @Test func aDependencyThatIsAddedInASuspendedQueueIsWaitedFor() {
    var walk = Walk()
    let world = LedgerWorld(waitingFor: 0).after([.ask, .note, .adopt, .attach])
    walk.walk(world, ["adder": [.add(1), .schedule], "second": second])
    walk.walk(world, ["adder": [.add(1), .schedule], "second": second, "asker": [.ask]])
    walk.expectSuccess(states: 300, schedules: 1_000)
  }

  @Test func whoStartsItByHandWhenAllHaveFinishedIsNotRefused() {
    var walk = Walk()
    let starter: [LedgerStep] = [.startByHand]
    walk.walk(LedgerWorld(waitingFor: 2), ["first": first, "second": second, "starter": starter])
    walk.walk(LedgerWorld(waitingFor: 2), ["first": first + second, "asker": [.ask], "starter": starter])
    let world = LedgerWorld(waitingFor: 2).after(first)
    walk.walk(world, ["asker": [.ask], "starter": starter, "canceller": [.cancel]])
    walk.expectSuccess(states: 1_000, schedules: 1_000_000)
  }

  // MARK: The permit

  @Test func itRequestsItsPermitWhenNothingElseIsWaitedFor() {
    var walk = Walk()
    let world = LedgerWorld(waitingFor: 1, needsPermit: true)
    for enqueue in [LedgerStep.enqueue, LedgerStep.plainEnqueue] {
      walk.walk(world, ["first": first, "queue": [.requirePermit] + enqueue, "holder": [.free]])
    }
    if isThorough {
      let queue = [.requirePermit] + LedgerStep.enqueue
      walk.walk(world, ["first": first, "queue": queue, "holder": [.free], "canceller": [.cancel]])
    }
    walk.expectSuccess(states: 400, schedules: 40_000)
  }

  @Test func itLeavesTheWaitQueueForWhatItWaitsForAnew() {
    var walk = Walk()
    let adder: [LedgerStep] = [.add(1), .dependencyFinishes(1)]
    walk.walk(
      LedgerWorld(waitingFor: 1, needsPermit: true),
      ["first": first, "queue": [.requirePermit], "adder": adder, "holder": [.free]]
    )
    walk.walk(
      LedgerWorld(waitingFor: 0, needsPermit: true),
      ["queue": [.requirePermit], "adder": [.add(1)], "second": second, "holder": [.free]]
    )
    walk.walk(
      LedgerWorld(waitingFor: 0, needsPermit: true),
      ["queue": [.requirePermit], "adder": adder, "another": [.add(2), .dependencyFinishes(2)], "holder": [.free]]
    )
    walk.expectSuccess(states: 1_000, schedules: 1_000_000)
  }
}
