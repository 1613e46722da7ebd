import Foundation
import Operations
import OperationsTestSupport

/// Tasks that request the operation shared under a key.
final class SoakSharing: Sendable {
  private let world: SoakWorld
  /// The operations made, and those running, under each key.
  private let states = Locked(SoakPlan.sharedKeys.map { _ in (made: 0, running: 0) })

  init(_ world: SoakWorld) { self.world = world }

  func begin() {
    for caller in world.plan.callers {
      world.after(caller.tick) { self.world.addTask(cancelledAfter: caller.cancelledAfter) { await self.call(caller) } }
    }
  }

  private func call(_ caller: SoakCaller) async {
    do {
      let (key, domain) = (ExclusivityKey(SoakPlan.sharedKeys[caller.key]), world.domains[0])
      let value = try await world.queues[1].run(sharing: key, in: domain) { self.make(caller.key) }
      let made = states.withLock { $0[caller.key].made }
      if !(1...made ~= value) { world.log.report("a caller got \(value), and \(made) have been made") }
    } catch {
      if !Task.isCancelled { world.log.report("a caller got \(error)") }
    }
  }

  private func make(_ key: Int) -> ResultOperation<Int> {
    let number = states.withLock { states in
      states[key].made += 1
      return states[key].made
    }
    let token = LiveCount.Token(world.live)
    return TaskOperation { [self] in
      let isAlone = states.withLock { states in
        states[key].running += 1
        return states[key].running == 1
      }
      if !isAlone { world.log.report("two operations shared under a key executed at once") }
      try? await world.clock.sleep(for: .milliseconds(4))
      states.withLock { $0[key].running -= 1 }
      return withExtendedLifetime(token) { number }
    }
  }
}
