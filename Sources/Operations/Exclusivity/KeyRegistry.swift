import Dispatch
import Synchronization

/// The table of all keys in the program. There is only one table, so that claimants can take keys of several domains
/// together.
enum KeyRegistry {
  typealias Table = KeyTable<KeyClaimant>

  private struct State {
    var table = Table()
    /// When the next timer fires. A timer for a later time may fire as well.
    var timerTime: Int?
    /// The number of logs above which the registry searches for logs to forget.
    var logLimit = 64
  }

  private static let state = Locked(State())
  /// A serial queue, which gets a thread even while other work blocks all threads of the global queues.
  private static let timerQueue = DispatchQueue(label: "Operations.keys")

  /// Accesses the table, and the state of requests, under the lock of the registry.
  static func withTable<Result>(_ body: (inout Table) -> Result) -> Result { state.withLock { body(&$0.table) } }

  typealias User = (claimant: KeyClaimant, isHolder: Bool)

  static func users(of obstacle: Table.Obstacle) -> [User] { withTable { $0.users(of: obstacle) } }

  /// Changes the table, and carries out the effects after releasing the lock.
  static func change<Result>(_ body: (inout Table, inout [Table.Effect]) -> Result) -> Result {
    var effects: [Table.Effect] = []
    let (result, delay, sweeps) = state.withLock { state -> (Result, Int?, Bool) in
      state.table.now = CoarseTime.now.milliseconds
      let result = body(&state.table, &effects)
      let sweeps = state.table.logs.count > state.logLimit
      guard let deadline = state.table.deadline, deadline < state.timerTime ?? .max else {
        return (result, nil, sweeps)
      }
      state.timerTime = deadline
      return (result, max(deadline - state.table.now, 0), sweeps)
    }
    if let delay { setTimer(after: delay) }
    if sweeps { sweep() }
    for effect in effects { carryOut(effect) }
    return result
  }

  /// Fires in the shared pool, behind called claimants that wait for a thread, and at the latest 200 ms later in a queue
  /// of its own, because work that blocks may hold every thread of the pool.
  private static func setTimer(after delay: Int) {
    timerQueue.asyncAfter(deadline: .now() + .milliseconds(delay)) {
      let hasFired = Atomic(false)
      let fire = { @Sendable in if !hasFired.exchange(true, ordering: .relaxed) { timerDidFire() } }
      DispatchQueue.global().async(execute: fire)
      timerQueue.asyncAfter(deadline: .now() + .milliseconds(200), execute: fire)
    }
  }

  private static func timerDidFire() {
    let search = state.withLock { state in
      state.timerTime = nil
      state.table.now = CoarseTime.now.milliseconds
      return state.table.beginDeadlockSearch()
    }
    let victim = search?.victim()
    change { table, effects in
      if let victim { table.refuse(victim, &effects) }
      table.timeDidPass(&effects)
    }
  }

  private static func carryOut(_ effect: Table.Effect) {
    switch effect {
    case .call(let claimant, let holdsKeys): claimant.call(holdsKeys: holdsKeys)
    case .time(let start, let claimant): start.set(on: claimant.clock)
    case .wait(let claimant, let delay): wait(claimant, for: delay)
    case .stop(let timer): timer.cancel()
    case .cancel(let claimant, let refusal): claimant.cancel(because: refusal)
    case .release: break
    }
  }

  /// Waits until a start has left the window of a throttle.
  private static func wait(_ claimant: KeyClaimant, for delay: Table.Delay) {
    let rest = delay.start.elapsed.map { delay.interval - $0 } ?? delay.interval
    // In a trampoline, because the end of this delay can end that of the next claimant, and so on.
    if rest <= .zero { return Trampoline.run { change { $0.endDelay(delay, &$1) } } }
    let timer = ClockTimer()
    withTable { $0.set(timer, for: delay) }?.cancel()
    // Clocks may fire too early.
    timer.start(after: rest, on: claimant.clock) { [weak claimant] in
      if let claimant { wait(claimant, for: delay) }
    }
  }

  /// Forgets the starts under throttled keys that are not in use and whose windows have passed.
  private static func sweep() {
    let logs = state.withLock { $0.table.logs.map { (id: $0, start: $1.starts.last, interval: $1.longestInterval) } }
    let passed = logs.filter { log in
      guard let start = log.start else { return true }
      return start.elapsed.map { $0 >= log.interval } ?? false
    }
    let forgotten = state.withLock { state in
      defer { state.logLimit = max(64, state.table.logs.count * 2) }
      return state.table.forget(passed.map { ($0.id, $0.start) })
    }
    withExtendedLifetime(forgotten) {}
  }
}
