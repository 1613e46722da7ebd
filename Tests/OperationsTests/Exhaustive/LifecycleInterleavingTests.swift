import Testing

@testable import Operations

/// The lifecycle, with every order of the critical sections of those who use it at once.
struct LifecycleInterleavingTests {
  private static let callers: [(name: String, steps: [LifecycleStep])] = [
    ("starter", [.start]),
    ("finisher", [.finish]),
    ("second finisher", [.finishWithError]),
    ("canceller", [.cancel]),
    ("second canceller", [.cancelWithError]),
    ("timer", [.timeOut, .end]),
    ("third finisher", [.finishWithCancellation]),
    ("stopper", [.cancelUnlessStarted]),
    ("member", [.record]),
    ("ender", [.end]),
  ]

  private static let plain: [LifecycleWorld.Kind] = [
    .init(), .init(hasObservers: true), .init(finishesInside: true), .init(hasTimeout: true),
    .init(hasObservers: true, hasTimeout: true, finishesInside: true),
  ]

  private static let prepared: [LifecycleWorld.Kind] = [
    .init(isPrepared: true), .init(meetsConditions: true), .init(meetsConditions: false), .init(isAdmittedAgain: true),
    .init(meetsConditions: true, isAdmittedAgain: true, finishesInside: true), .init(lacksInput: true),
    .init(meetsConditions: true, lacksInput: true), .init(isPrepared: true, hasObservers: true, hasTimeout: true),
  ]

  /// Every one and two of the others next to the one who starts it, and of the simplest operations three, too.
  private func walk(_ kinds: [LifecycleWorld.Kind]) -> Interleavings<LifecycleStep> {
    var walk = Interleavings<LifecycleStep>()
    let (starter, others) = (Self.callers[0], Self.callers.dropFirst())
    for kind in kinds {
      for first in others.indices {
        walk.walk(LifecycleWorld(kind), [starter, others[first]])
        for second in others.indices where second > first {
          walk.walk(LifecycleWorld(kind), [others[first], others[second]])
          walk.walk(LifecycleWorld(kind), [starter, others[first], others[second]])
          for third in others.indices where kind.isSimple && third > second {
            walk.walk(LifecycleWorld(kind), [starter, others[first], others[second], others[third]])
          }
        }
      }
    }
    return walk
  }

  @Test func callsThatCrossKeepThePromises() { walk(Self.plain).expectSuccess(states: 25_000, schedules: 600_000) }

  @Test func callsThatCrossThePreparationKeepThePromises() {
    walk(Self.prepared).expectSuccess(states: 35_000, schedules: 350_000)
  }

  /// Only one of them is allowed; the other one is told so.
  @Test func twoStartsThatCrossLeadToOneExecution() {
    var walk = Interleavings<LifecycleStep>()
    for kind in Self.plain + Self.prepared {
      walk.walk(
        LifecycleWorld(kind),
        ["starter": [.start], "second starter": [.start], "finisher": [.finish], "canceller": [.cancel]]
      )
    }
    walk.expectSuccess(states: 4_500, schedules: 400_000)
  }
}
