import Soak
import Testing

@testable import Operations

/// The ledger next to Foundation's books, with every order of the critical sections of threads that use them at once.
struct LedgerInterleavingTests {
  private typealias Walk = Interleavings<LedgerStep>

  private let first: [LedgerStep] = [.dependencyFinishes(0)]
  private let second: [LedgerStep] = [.dependencyFinishes(1)]
  private let late: [LedgerStep] = [.add(1), .dependencyFinishes(1)]
  private let startByHand: [LedgerStep] = [.start(byHand: true)]

  @Test(arguments: [LedgerStep.enqueue, LedgerStep.plainEnqueue])
  func enqueuedWhileDependenciesFinish_runsAndNotTooEarly(enqueue: [LedgerStep]) {
    var walk = Walk()
    walk.walk(LedgerWorld(waitingFor: 1), [first, enqueue])
    walk.walk(LedgerWorld(waitingFor: 2), [first, second, enqueue])
    // One of them never finishes.
    walk.walk(LedgerWorld(waitingFor: 2), [first, enqueue, [.ask]])
    walk.expectSuccess(states: 3_000, schedules: 40_000_000_000)
  }

  // Foundation's own spelling, without the look afterwards, leaves two gaps that a third thread can open: as for
  // Foundation's own operations, the thread that enqueues may note an answer after the operation has been cancelled, or
  // has become ready if another thread asked in between. So what follows goes for the verbs.

  @Test func askedInBetween_losesNoWakeUp() {
    var walk = Walk()
    let world = LedgerWorld(waitingFor: 1)
    walk.walk(world.after([.makeGate]), [first, LedgerStep.plainEnqueue + [.lookAgain], [.ask]])
    walk.walk(world.after(LedgerStep.enqueue), [first, [.ask], [.ask]])
    walk.expectSuccess(states: 8_000, schedules: 100_000_000_000_000)
  }

  @Test func cancelledInBetween_runs() {
    var walk = Walk()
    let world = LedgerWorld(waitingFor: 1).after([.makeGate])
    walk.walk(world, [first, LedgerStep.plainEnqueue + [.lookAgain], [.cancel]])
    walk.walk(LedgerWorld(waitingFor: 2).after(LedgerStep.enqueue), [first, [.ask], [.cancel]])
    walk.expectSuccess(states: 20_000, schedules: 20_000_000_000_000_000)
  }

  @Test func dependencyRemovedInBetween_countsOnce() {
    var walk = Walk()
    for enqueue in [LedgerStep.enqueue, LedgerStep.plainEnqueue] {
      walk.walk(LedgerWorld(waitingFor: 1), [first, enqueue, [.unlist(0)]])
      walk.walk(LedgerWorld(waitingFor: 2), [first, enqueue, [.unlist(1)]])
    }
    walk.expectSuccess(states: 18_000, schedules: 40_000_000_000_000)
  }

  @Test func dependencyAddedInBetween_losesNoWakeUp() {
    var walk = Walk()
    let world = LedgerWorld(waitingFor: 1, mayBeLate: true)
    for enqueue in [LedgerStep.enqueue, LedgerStep.plainEnqueue] { walk.walk(world.after(enqueue), [first, late]) }
    walk.expectSuccess(states: 900, schedules: 900_000)
  }

  /// No addition is too late: the dependency that finishes does so after the other has been added.
  @Test func dependencyAddedInTime_isWaitedFor() {
    var walk = Walk()
    walk.walk(LedgerWorld(waitingFor: 1), [[.add(1)] + first, LedgerStep.enqueue])
    walk.walk(LedgerWorld(waitingFor: 1), [[.add(1)] + first, LedgerStep.enqueue, second])
    walk.expectSuccess(states: 3_500, schedules: 60_000_000_000_000)
  }

  @Test func dependencyAddedInASuspendedQueue_isWaitedFor() {
    var walk = Walk()
    let world = LedgerWorld(waitingFor: 0).after([.ask, .note, .adopt, .attach])
    walk.walk(world, [[.add(1), .schedule], second])
    walk.walk(world, [[.add(1), .schedule], second, [.ask]])
    walk.expectSuccess(states: 300, schedules: 1_000)
  }

  @Test func startedByHandWhenAllHaveFinished_isNotRefused() {
    var walk = Walk()
    let world = LedgerWorld(waitingFor: 2)
    walk.walk(world, [first, second, startByHand])
    walk.walk(world, [first + second, [.ask], startByHand])
    walk.walk(world.after(first), [[.ask], startByHand, [.cancel]])
    walk.expectSuccess(states: 1_000, schedules: 1_000_000)
  }

  // MARK: The permit

  @Test func permit_isRequestedWhenNothingElseIsWaitedFor() {
    var walk = Walk()
    let world = LedgerWorld(waitingFor: 1, needsPermit: true)
    for enqueue in [LedgerStep.enqueue, LedgerStep.plainEnqueue] {
      walk.walk(world, [first, [.requirePermit] + enqueue, [.free]])
    }
    if isThorough { walk.walk(world, [first, [.requirePermit] + LedgerStep.enqueue, [.free], [.cancel]]) }
    walk.expectSuccess(states: 400, schedules: 40_000)
  }

  @Test func newDependency_leavesTheWaitQueueOfThePermit() {
    var walk = Walk()
    let free = LedgerWorld(waitingFor: 0, needsPermit: true)
    walk.walk(LedgerWorld(waitingFor: 1, needsPermit: true), [first, [.requirePermit], late, [.free]])
    walk.walk(free, [[.requirePermit], [.add(1)], second, [.free]])
    walk.walk(free, [[.requirePermit], late, [.add(2), .dependencyFinishes(2)], [.free]])
    walk.expectSuccess(states: 1_000, schedules: 1_000_000)
  }
}
