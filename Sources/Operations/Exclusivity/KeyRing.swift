import Dispatch

/// The one table of all keys of the program, so that the keys of several domains are acquired together.
enum KeyRing {
  typealias Table = KeyTable<WeakRequest>

  struct WeakRequest: Sendable {
    weak var request: KeyRequest?
  }

  private struct State {
    var table = Table()
    var isTicking = false
    /// When a deadlock is looked for again, in ticks: seldom while there is much to look at.
    var patience = 0
    /// With so many logs it is worth while to look for those that can be forgotten.
    var logsAtMost = 64
  }

  private enum Tick {
    case none
    case again
    case search(Table)
  }

  private static let state = Locked(State())
  /// A serial queue has a thread at once, whatever blocks the others.
  private static let timers = DispatchQueue(label: "Operations.keys")
  /// How long an operation that has been called may take to come before others go first: twice that at most.
  private static let period = DispatchTimeInterval.milliseconds(20)

  static func look<Result>(_ body: (Table) -> Result) -> Result { state.withLock { body($0.table) } }

  /// Changes the table under its lock, and carries out what comes of it when the lock is released.
  static func change<Result>(_ body: (inout Table, inout Table.Effects) -> Result) -> Result {
    var effects = Table.Effects()
    let (result, startsTicking, sweeps) = state.withLock { state -> (Result, Bool, Bool) in
      let result = body(&state.table, &effects)
      let startsTicking = state.table.needsTick && !state.isTicking
      if startsTicking { state.isTicking = true }
      return (result, startsTicking, state.table.logs.count > state.logsAtMost)
    }
    if startsTicking { tickLater() }
    if sweeps { sweep() }
    carryOut(effects)
    return result
  }

  private static func carryOut(_ effects: Table.Effects) {
    for step in effects.steps { step.claimant.request?.goes(isCalled: step.isCalled) }
    for delay in effects.delayed { delay.claimant.request?.wait(for: delay) }
    for refusal in effects.refused { refusal.claimant.request?.refuse(refusal) }
  }

  // MARK: Time

  private static func tickLater() {
    timers.asyncAfter(deadline: .now() + period) { tick() }
  }

  private static func tick() {
    change { $0.tick(&$1) }
    let tick = state.withLock { state -> Tick in
      guard state.table.needsTick else {
        state.isTicking = false
        return .none
      }
      state.patience -= 1
      guard state.table.mayBeStuck, state.patience <= 0 else { return .again }
      state.patience = state.table.entries.count / 4096
      state.table.willLookForDeadlock()
      return .search(state.table)
    }
    if case .none = tick { return }
    if case .search(let table) = tick {
      let remedy = table.remedy()
      if !remedy.passing.isEmpty || remedy.refused != nil { change { $0.apply(remedy, &$1) } }
    }
    tickLater()
  }

  /// Forgets the starts under throttled keys that are not in use, if their windows are over.
  private static func sweep() {
    let logs = state.withLock { $0.table.logs }
    var over: [Table.Place: Int] = [:]
    for (place, log) in logs {
      if let last = log.starts.last, let elapsed = last.time.elapsed, elapsed < log.longestInterval { continue }
      if let last = log.starts.last, last.time.elapsed == nil { continue }
      over[place] = log.starts.last?.serial ?? -1
    }
    let forgotten = state.withLock { state in
      defer { state.logsAtMost = max(64, state.table.logs.count * 2) }
      return state.table.forget(over)
    }
    withExtendedLifetime((logs, forgotten)) {}
  }
}
