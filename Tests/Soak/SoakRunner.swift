import Foundation
import Operations

/// Runs rounds of the soak: random worlds, each from a seed, in which much goes wrong, and no promise may be broken.
package enum SoakRunner {
  package struct Outcome: Sendable {
    package let seed: UInt64
    package let summary: SoakSummary
    /// The promises that were broken.
    package let violations: [String]
  }

  /// - Parameter patience: After which the round counts as one that hangs.
  package static func run(seed: UInt64, patience: Duration = .seconds(60)) async -> Outcome {
    let plan = SoakPlan(seed: seed)
    let live = LiveCount()
    let watchdog = SoakWatchdog(live)
    let events = Locked(0)
    let violations = await watchdog.run(patience: patience) {
      let violations = await carryOut(plan, live, watchdog, events)
      if !violations.isEmpty { return violations }
      await watchdog.stage("release") {
        await live.none()
        // What a thread of Foundation's is just letting go of may take a moment longer.
        while !watchdog.survivors.isEmpty { await Task.yield() }
      }
      return []
    }
    return Outcome(seed: seed, summary: SoakSummary(plan, events: events.withLock { $0 }), violations: violations)
  }

  /// Everything is let go of when this returns.
  private static func carryOut(
    _ plan: SoakPlan,
    _ live: LiveCount,
    _ watchdog: SoakWatchdog,
    _ events: Locked<Int>
  ) async -> [String] {
    let round = SoakRound(plan, live, watchdog)
    watchdog.follow(round.world)
    let violations = await round.run()
    let count = round.world.events.eventCount
    events.withLock { $0 = count }
    return violations
  }
}
