import Foundation
import Operations

/// Runs rounds of the soak: randomized tests with injected faults, each from a seed, that check the package's promises.
package enum SoakRunner {
  package struct Outcome: Sendable {
    package let summary: SoakSummary
    /// The promises that were broken.
    package let violations: [String]
  }

  /// - Parameter patience: After which the round counts as one that hangs.
  package static func run(seed: UInt64, patience: Duration = .seconds(60)) async -> Outcome {
    let plan = SoakPlan(seed: seed)
    let watchdog = SoakWatchdog()
    let events = Locked(0)
    let violations = await watchdog.run(patience: patience) {
      let violations = await carryOut(plan, watchdog, events)
      if !violations.isEmpty { return violations }
      await watchdog.stage("release") {
        await watchdog.live.none()
        // A thread of Foundation may release an operation a moment later.
        while !watchdog.survivors.isEmpty { await Task.yield() }
      }
      return []
    }
    return Outcome(summary: SoakSummary(plan, events: events.withLock { $0 }), violations: violations)
  }

  /// Everything is released when this returns.
  private static func carryOut(_ plan: SoakPlan, _ watchdog: SoakWatchdog, _ events: Locked<Int>) async -> [String] {
    let round = SoakRound(plan, watchdog)
    watchdog.follow(round.world)
    let violations = await round.run()
    let count = round.world.homes.reduce(0) { $0 + $1.scheduler.statistics.eventsRun }
    events.withLock { $0 = count }
    return violations
  }
}

/// The amount of work, and the faults injected into it.
package struct SoakSummary: Sendable, CustomStringConvertible {
  package private(set) var rounds = 0
  private var operations = 0
  private var events = 0
  private var faults: [String: Int] = [:]

  package init() {}

  init(_ plan: SoakPlan, events: Int) {
    (rounds, operations, self.events) = (1, plan.items.count, events)
    for item in plan.items {
      if item.isFailing { add("failing") }
      if item.isUnmet { add("unmet conditions") }
      if item.waitsForGhost || item.leadsToGhost { add("never enqueued") }
      switch item.way {
      case .never: add("never finishing")
      case .twice: add("finishing twice")
      case .late: add("finishing late")
      case .cancellingGroup: add("cancelling their group")
      default: break
      }
      switch item.coming {
      case .broughtBy: add("newcomers")
      case .whenGroupIsCancelled: add("newcomers to cancelled groups")
      case .awaited(.some): add("cancelled tasks")
      case .awaited, .atFirst: break
      }
    }
    for action in plan.actions {
      switch action.deed {
      case .cancel(_, let threads): add("cancellations", threads)
      case .finish: add("finished from outside")
      default: break
      }
    }
    for caller in plan.callers where caller.cancelledAt != nil { add("cancelled callers") }
    for home in plan.homes where home.shutdown != nil { add("shutdowns") }
  }

  private mutating func add(_ fault: String, _ count: Int = 1) { faults[fault, default: 0] += count }

  package static func += (left: inout Self, right: Self) {
    left.rounds += right.rounds
    left.operations += right.operations
    left.events += right.events
    left.faults.merge(right.faults, uniquingKeysWith: +)
  }

  package var description: String {
    let faults = faults.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
    return "\(rounds) rounds, \(operations) operations, \(events) events; \(faults)"
  }
}

/// Records the stage of a round, and notices when it hangs.
final class SoakWatchdog: Sendable {
  private struct State {
    var stage = "beginning"
    weak var world: SoakWorld?
    var names: [(name: String, operation: WeakReference<Operation>)] = []
    var outcome: CheckedContinuation<[String], Never>?
  }

  /// The objects of the round that are alive.
  let live = LiveCount()
  private let state = Locked(State())

  func stage(_ name: String, _ body: () async -> Void) async {
    state.withLock { $0.stage = name }
    await body()
  }

  func follow(_ world: SoakWorld) {
    let names = world.parts.joined().map { ($0.name ?? "", WeakReference($0)) }
    state.withLock { state in
      state.world = world
      state.names = names
    }
  }

  /// The names of the operations that have not been released.
  var survivors: [String] {
    state.withLock { $0.names }.filter { $0.operation.object != nil }.map(\.name)
  }

  /// Runs `body`, or gives up after `patience` and leaves it hanging.
  func run(patience: Duration, _ body: @escaping @Sendable () async -> [String]) async -> [String] {
    let timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "soak watchdog"))
    timer.schedule(deadline: .now() + (patience / .seconds(1)))
    timer.setEventHandler { self.end(with: self.describe(after: patience)) }
    timer.resume()
    defer {
      timer.setEventHandler {}
      timer.cancel()
    }
    return await withCheckedContinuation { continuation in
      state.withLock { $0.outcome = continuation }
      Task { end(with: await body()) }
    }
  }

  private func end(with violations: [String]) {
    state.withLock { $0.outcome.take() }?.resume(returning: violations)
  }

  private func describe(after patience: Duration) -> [String] {
    let (stage, world) = state.withLock { ($0.stage, $0.world) }
    var result = ["It hangs: after \(patience) it had come to “\(stage)”, and \(live.alive) tokens are alive."]
    if stage == "release" { return result + ["Not released: \(survivors.joined(separator: ", "))"] }
    guard let world else { return result }
    for index in world.plan.items.indices where !world.operations[index].isFinished {
      result.append("\(index) has not finished: \(world.plan.items[index])")
    }
    let homes = world.homes.map(\.scheduler)
    for queue in world.queues + homes.map(\.queue) where !queue.operations.isEmpty {
      result.append(queue.stallReport(alsoIn: world.queues).description)
    }
    for home in homes { result.append("\(home.name): \(home.statistics)") }
    return result
  }
}
