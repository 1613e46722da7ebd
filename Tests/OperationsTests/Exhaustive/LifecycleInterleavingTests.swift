import Testing

@testable import Operations

/// The lifecycle, with every order of the critical sections of threads that use it at once.
struct LifecycleInterleavingTests {
  private typealias Walk = Interleavings<LifecycleStep>

  private let others: [[LifecycleStep]] = [
    [.finish], [.finishWithError], [.cancel], [.cancelWithError], [.timeOut, .end], [.finishWithCancellation],
    [.cancelUnlessStarted], [.record], [.end],
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

  /// Walks every one and two of the others next to a start, and of the simplest operations every three.
  private func walk(_ kinds: [LifecycleWorld.Kind]) -> Walk {
    var walk = Walk()
    for kind in kinds {
      for first in others.indices {
        walk.walk(LifecycleWorld(kind), [[.start], others[first]])
        for second in others.indices where second > first {
          walk.walk(LifecycleWorld(kind), [others[first], others[second]])
          walk.walk(LifecycleWorld(kind), [[.start], others[first], others[second]])
          for third in others.indices where kind.isSimple && third > second {
            walk.walk(LifecycleWorld(kind), [[.start], others[first], others[second], others[third]])
          }
        }
      }
    }
    return walk
  }

  @Test func callsThatCross_keepThePromises() { walk(Self.plain).expectSuccess(states: 25_000, schedules: 600_000) }

  @Test func callsThatCrossThePreparation_keepThePromises() {
    walk(Self.prepared).expectSuccess(states: 35_000, schedules: 350_000)
  }

  /// Only one of them is allowed, and the other one is refused.
  @Test func twoStartsThatCross_leadToOneExecution() {
    var walk = Walk()
    for kind in Self.plain + Self.prepared {
      walk.walk(LifecycleWorld(kind), [[.start], [.start], [.finish], [.cancel]])
    }
    walk.expectSuccess(states: 4_500, schedules: 400_000)
  }
}
