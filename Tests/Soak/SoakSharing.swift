import Foundation
import Operations
import OperationsTestSupport

/// Tasks that request the operation shared under a key.
final class SoakSharing: Sendable {
  private struct State {
    var tasks: [Int: Task<Void, Never>] = [:]
    /// The operations made, and the ones running, under each key.
    var made: [Int: Int] = [:]
    var running: [Int: Int] = [:]
  }

  private let world: SoakWorld
  private let state = Locked(State())

  init(_ world: SoakWorld) { self.world = world }

  var deeds: [SoakClock.Deed] {
    var deeds: [SoakClock.Deed] = []
    for (index, caller) in world.plan.callers.enumerated() {
      deeds.append((caller.tick, { self.call(index, caller) }))
      if let tick = caller.cancelledAt { deeds.append((tick, { self.state.withLock { $0.tasks[index] }?.cancel() })) }
    }
    return deeds
  }

  func end() async {
    for task in state.withLock({ $0.tasks.values.map(\.self) }) { await task.value }
  }

  private func call(_ index: Int, _ caller: SoakCaller) {
    let task = Task {
      do {
        let (key, domain) = (ExclusivityKey(SoakPlan.sharedKeys[caller.key]), world.domains[0])
        let value = try await world.queues[1].run(sharing: key, in: domain) { self.make(caller.key) }
        let made = state.withLock { $0.made[caller.key, default: 0] }
        if !(1...made ~= value) { world.log.report("a caller got \(value), and \(made) have been made") }
      } catch {
        if !Task.isCancelled { world.log.report("a caller got \(error)") }
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
      if !isAlone { world.log.report("two operations shared under a key executed at once") }
      try? await world.clock.sleep(for: .milliseconds(4))
      state.withLock { $0.running[key, default: 0] -= 1 }
      return withExtendedLifetime(token) { number }
    }
  }
}
