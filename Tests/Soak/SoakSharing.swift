import Foundation
import Operations
import OperationsTestSupport

/// Those who ask for what is shared under a key.
final class SoakSharing: Sendable {
  private struct State {
    var tasks: [Int: Task<Void, Never>] = [:]
    var cancelled: Set<Int> = []
    /// How many have been made, and how many run, under each key.
    var made: [Int: Int] = [:]
    var running: [Int: Int] = [:]
    var violations: [String] = []
  }

  private let callers: [SoakCaller]
  private let world: SoakWorld
  private let state = Locked(State())

  init(_ callers: [SoakCaller], _ world: SoakWorld) {
    self.callers = callers
    self.world = world
  }

  var violations: [String] { state.withLock { $0.violations } }

  var deeds: [(tick: Int, deed: SoakClock.Deed)] {
    var deeds: [(tick: Int, deed: SoakClock.Deed)] = []
    for (index, caller) in callers.enumerated() {
      deeds.append((caller.tick, { self.call(index, caller) }))
      if let tick = caller.cancelledAt { deeds.append((tick, { self.cancel(index) })) }
    }
    return deeds
  }

  func end() async {
    for task in state.withLock({ $0.tasks.values.map(\.self) }) { await task.value }
  }

  private func cancel(_ index: Int) {
    let task = state.withLock { state in
      state.cancelled.insert(index)
      return state.tasks[index]
    }
    task?.cancel()
  }

  private func call(_ index: Int, _ caller: SoakCaller) {
    let task = Task {
      do {
        let value = try await world.queues[1].run(
          sharing: ExclusivityKey(SoakPlan.sharedKeys[caller.key]),
          in: world.domains[0]
        ) { self.make(caller.key) }
        let made = state.withLock { $0.made[caller.key, default: 0] }
        if !(1...made ~= value) { report("who shares got \(value), and \(made) have been made") }
      } catch {
        if !state.withLock({ $0.cancelled.contains(index) }) { report("who shares got \(error)") }
      }
    }
    state.withLock { $0.tasks[index] = task }
  }

  private func make(_ key: Int) -> ResultOperation<Int> {
    let number = state.withLock { state in
      state.made[key, default: 0] += 1
      return state.made[key, default: 0]
    }
    let token = LiveCount.Token(world.live)
    return TaskOperation { [self] in
      let isAlone = state.withLock { state in
        state.running[key, default: 0] += 1
        return state.running[key] == 1
      }
      if !isAlone { report("two that are shared under a key were executed at once") }
      try? await world.clock.sleep(for: .milliseconds(4))
      state.withLock { $0.running[key, default: 0] -= 1 }
      return withExtendedLifetime(token) { number }
    }
  }

  private func report(_ violation: String) { state.withLock { $0.violations.append(violation) } }
}
