import Dispatch

/// The table of all keys in the program. There is only one table, so that operations can acquire keys of several
/// domains together.
enum KeyRegistry {
  typealias Table = KeyTable<KeyRequest>

  private struct State {
    var table = Table()
    var isTicking = false
    /// The number of ticks until the next search for a deadlock, which costs more with more entries.
    var ticksUntilSearch = 0
    /// The number of logs above which the registry searches for logs to forget.
    var logLimit = 64
  }

  private static let state = Locked(State())
  /// A serial queue, which gets a thread even while other work blocks all threads of the global queues.
  private static let timerQueue = DispatchQueue(label: "Operations.keys")
  private static let period = DispatchTimeInterval.milliseconds(20)

  /// Accesses the table, and the state of requests, under the lock of the registry.
  static func withTable<Result>(_ body: (inout Table) -> Result) -> Result { state.withLock { body(&$0.table) } }

  /// Changes the table, and carries out the effects after releasing the lock.
  static func change<Result>(_ body: (inout Table, inout [Table.Effect]) -> Result) -> Result {
    var effects: [Table.Effect] = []
    let (result, startsTicking, sweeps) = state.withLock { state -> (Result, Bool, Bool) in
      let result = body(&state.table, &effects)
      let startsTicking = state.table.needsTick && !state.isTicking
      if startsTicking { state.isTicking = true }
      return (result, startsTicking, state.table.logs.count > state.logLimit)
    }
    if startsTicking { scheduleTick() }
    if sweeps { sweep() }
    for effect in effects { carryOut(effect) }
    return result
  }

  private static func carryOut(_ effect: Table.Effect) {
    switch effect {
    case .permit(let request): request.operation?.permitIsGranted()
    case .resume(let request): request.resume()
    case .time(let start, let request): if let clock = request.operation?.clock { start.set(on: clock) }
    case .wait(let request, let delay): request.wait(for: delay)
    case .cancel(let request): request.operation?.cancel()
    case .drop(let request, let key, let owner):
      guard let operation = request.operation else { return }
      operation.cancel(with: OperationError.excluded(operation, from: key, by: owner.operation))
    case .refuse(let request, let key, let holder):
      guard let operation = request.operation else { return }
      operation.cancel(with: OperationError.deadlock(of: operation, waitingFor: key, heldBy: holder?.operation))
    case .release: break
    }
  }

  private static func scheduleTick() {
    timerQueue.asyncAfter(deadline: .now() + period) { tick() }
  }

  private static func tick() {
    change { $0.tick(&$1) }
    let (isTicking, search) = state.withLock { state -> (Bool, DeadlockSearch?) in
      state.isTicking = state.table.needsTick
      state.ticksUntilSearch -= 1
      guard state.isTicking, state.table.mayDeadlock, state.ticksUntilSearch <= 0 else { return (state.isTicking, nil) }
      state.ticksUntilSearch = state.table.entries.count / 4096
      return (state.isTicking, state.table.beginDeadlockSearch())
    }
    if let remedy = search?.remedy() { change { $0.apply(remedy, &$1) } }
    if isTicking { scheduleTick() }
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
