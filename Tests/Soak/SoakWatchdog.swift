import Foundation
import Operations

/// Knows how far a round has come, and sees when it does not come any further.
final class SoakWatchdog: Sendable {
  private struct State {
    var stage = "beginning"
    weak var world: SoakWorld?
    var names: [(name: String, operation: WeakReference<Operation>)] = []
    var outcome: CheckedContinuation<[String], Never>?
  }

  private let state = Locked(State())
  private let live: LiveCount

  init(_ live: LiveCount) { self.live = live }

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

  /// The operations that are still there.
  var survivors: [String] {
    let names = state.withLock { $0.names }
    return names.filter { $0.operation.object != nil }.map(\.name)
  }

  /// Carries `body` out, or gives up after `patience`. What hangs then goes on hanging.
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
    let survivors = survivors
    if stage == "release" { result.append("Not released: \(survivors.joined(separator: ", "))") }
    guard let world, stage != "release" else { return result }
    for index in world.plan.items.indices where !world.operations[index].isFinished {
      result.append("\(index) has not finished: \(world.plan.items[index])")
    }
    let homes = world.events.homes.map(\.scheduler)
    for queue in world.queues + homes.map(\.queue) where !queue.operations.isEmpty {
      result.append(queue.stallReport(alsoIn: world.queues).description)
    }
    for home in homes { result.append("\(home.name): \(home.statistics)") }
    return result
  }
}
