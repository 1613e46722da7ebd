import Dispatch

/// The table of all keys in the program. There is only one table, so that operations can acquire keys of several
/// domains together.
enum KeyRegistry {
  typealias Table = KeyTable<KeyRequest>

  private struct State {
    var table = Table()
    var isTicking = false
    /// The number of ticks until the next search for a deadlock. It grows with the number of entries, as the cost of a
    /// search does.
    var ticksUntilSearch = 0
    /// The number of logs above which the registry searches for logs to forget.
    var logLimit = 64
  }

  private enum Tick {
    case stop
    case wait
    case search(Table)
  }

  private static let state = Locked(State())
  /// The queue of the ticks. A serial queue gets a thread even while other work blocks all threads of the global
  /// queues.
  private static let timerQueue = DispatchQueue(label: "Operations.keys")
  /// The time between ticks. A permitted operation is overdue after one to two periods.
  private static let period = DispatchTimeInterval.milliseconds(20)

  /// Accesses the table, and the requests, under the lock of the registry.
  static func withTable<Result>(_ body: (inout Table) -> Result) -> Result { state.withLock { body(&$0.table) } }

  /// Changes the table under its lock, and carries out the effects after releasing it.
  static func change<Result>(_ body: (inout Table, inout Table.Effects) -> Result) -> Result {
    var effects = Table.Effects()
    let (result, startsTicking, sweeps) = state.withLock { state -> (Result, Bool, Bool) in
      let result = body(&state.table, &effects)
      let startsTicking = state.table.needsTick && !state.isTicking
      if startsTicking { state.isTicking = true }
      return (result, startsTicking, state.table.logs.count > state.logLimit)
    }
    if startsTicking { scheduleTick() }
    if sweeps { sweep() }
    for grant in effects.grants { grant.claimant.proceed(isPermit: grant.isPermit) }
    for delay in effects.delayed { delay.claimant.wait(for: delay) }
    for refusal in effects.refused { refusal.claimant.refuse(refusal) }
    return result
  }

  private static func scheduleTick() {
    timerQueue.asyncAfter(deadline: .now() + period) { tick() }
  }

  private static func tick() {
    change { $0.tick(&$1) }
    let tick = state.withLock { state -> Tick in
      guard state.table.needsTick else {
        state.isTicking = false
        return .stop
      }
      state.ticksUntilSearch -= 1
      guard state.table.mayDeadlock, state.ticksUntilSearch <= 0 else { return .wait }
      state.ticksUntilSearch = state.table.entries.count / 4096
      return .search(state.table.beginDeadlockSearch())
    }
    switch tick {
    case .stop: return
    case .wait: break
    case .search(let table):
      let remedy = table.remedy()
      if !remedy.preferred.isEmpty || remedy.refused != nil { change { $0.apply(remedy, &$1) } }
    }
    scheduleTick()
  }

  /// Forgets the starts under throttled keys that are not in use and whose windows have passed.
  private static func sweep() {
    let last = state.withLock { state in
      state.table.logs.map { id, log in (id: id, start: log.starts.last, interval: log.longestInterval) }
    }
    var passed: [Table.QueueID: Int] = [:]
    for (id, start, interval) in last {
      guard let start else {
        passed[id] = -1
        continue
      }
      if let elapsed = start.time.elapsed, elapsed >= interval { passed[id] = start.serial }
    }
    let forgotten = state.withLock { state in
      defer { state.logLimit = max(64, state.table.logs.count * 2) }
      return state.table.forget(passed)
    }
    withExtendedLifetime(forgotten) {}
  }
}
