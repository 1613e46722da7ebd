import Foundation
import Operations

/// Runs rounds of the soak: randomized tests with injected faults, each from a seed, that check the package's promises.
package enum SoakRunner {
  package struct Outcome: Sendable {
    package let operations: Int
    package let violations: [String]
  }

  /// - Parameter patience: After which the round counts as one that hangs.
  package static func run(seed: UInt64, patience: Duration = .seconds(60)) async -> Outcome {
    let plan = SoakPlan(seed: seed)
    let watchdog = SoakWatchdog()
    let violations = await watchdog.run(patience: patience) {
      let violations = await carryOut(plan, watchdog)
      if !violations.isEmpty { return violations }
      await watchdog.stage("release") {
        await watchdog.live.none()
        // A thread of Foundation may release an operation a moment later.
        while !watchdog.survivors.isEmpty { await Task.yield() }
      }
      return []
    }
    return Outcome(operations: plan.items.count, violations: violations)
  }

  /// Everything is released when this returns.
  private static func carryOut(_ plan: SoakPlan, _ watchdog: SoakWatchdog) async -> [String] {
    let round = SoakRound(plan, watchdog)
    watchdog.follow(round.world)
    return await round.run()
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

  var survivors: [String] { state.withLock { $0.names }.filter { $0.operation.object != nil }.map(\.name) }

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

  private func end(with violations: [String]) { state.withLock { $0.outcome.take() }?.resume(returning: violations) }

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
