import Dispatch
import Synchronization

/// The table of all keys in the program: only one, so that claimants can take keys of several domains together.
enum KeyRegistry {
  private static let table = Locked(KeyTable())
  /// A serial queue, which gets a thread even while other work blocks all threads of the global queues.
  private static let timerQueue = DispatchQueue(label: "Operations.keys")

  /// Accesses the table, and the state of requests, under the lock of the registry.
  static func withTable<Result>(_ body: (inout KeyTable) -> Result) -> Result {
    table.withLock { table in
      table.enterEarlyTasks()
      return body(&table)
    }
  }

  static func withLock<Result>(_ body: () -> Result) -> Result { table.withLock { _ in body() } }

  static func arriveEarly(_ task: TaskKeys) -> Bool? {
    table.withLock { $0.arriveEarly(task) { Task.currentPriority == .medium } }
  }

  /// Releases the keys of a task. Those that still use them inside the task keep them until they end.
  static func release(_ task: TaskKeys) {
    var next: TaskKeys?
    let ticket = table.withLock { table in
      if task.ticket == nil { next = table.leaveEarly(task) }
      return task.ticket
    }
    if let ticket { return change { table, effects in table.leave(ticket, lends: true, &effects) } }
    task.end()
    next?.call(isAnswered: true)
  }

  /// Changes the table, and carries out the effects after releasing the lock.
  static func change<Result>(_ body: (inout KeyTable, inout [KeyTable.Effect]) -> Result) -> Result {
    var effects: [KeyTable.Effect] = []
    let result = change(&effects, body)
    if !effects.isEmpty { perform(effects) }
    return result
  }

  /// Changes the table. The caller may hold the lock of a group, and carries out the effects after releasing it.
  static func change<Result>(
    _ effects: inout [KeyTable.Effect],
    _ body: (inout KeyTable, inout [KeyTable.Effect]) -> Result
  ) -> Result {
    table.withLock { table in
      table.enterEarlyTasks()
      table.now = CoarseTime.now.milliseconds
      let result = body(&table, &effects)
      if let deadline = table.calls.first?.until, deadline < table.timerTime ?? .max {
        table.timerTime = deadline
        effects.append(.setTimer(max(deadline - table.now, 0)))
      }
      return result
    }
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
    change { table, effects in
      table.timerTime = nil
      table.timeDidPass(&effects)
    }
  }

  @inline(never)  // Otherwise each kind of change would contain it.
  static func perform(_ effects: [KeyTable.Effect]) {
    for effect in effects {
      switch effect {
      case .call(let claimant, let isAnswered): claimant.call(isAnswered: isAnswered)
      case .count(let start, let claimant): count(start, since: ElapsedTime(claimant.clock))
      case .lend(let priority, let claimant):
        // In a trampoline, because the members of a holder may wait for keys in turn, and lend it to their holders.
        Trampoline.run { claimant.operation?.escalatePriority(to: TaskPriority(rawValue: priority)) }
      case .watch(let claimant): if let operation = claimant.operation { WaitWatch.watch(operation) }
      case .cancel(let claimant, let refusal): claimant.cancel(with: refusal.map { OperationError(claimant, $0) })
      case .setTimer(let delay): setTimer(after: delay)
      case .release: break
      }
    }
  }

  static func pause(_ id: KeyUse.ID, for interval: Duration, on clock: any Clock<Duration>) {
    if interval <= .zero { return }
    let time = ElapsedTime(clock)
    count(change { table, _ in table.pause(id, for: interval) { interval - time.now } }, since: time)
  }

  /// Ends a start when it has left the window of its throttle, or a pause. Clocks may fire too early.
  private static func count(_ start: KeyTable.Start, since time: ElapsedTime) {
    let rest = (start.share.interval ?? .zero) - time.now
    // In a trampoline, because the next claimant may start, and leave its window at once, and so on.
    if rest <= .zero { return Trampoline.run { change { $0.end(start, &$1) } } }
    ClockTimer().start(after: rest, on: time.clock) { count(start, since: time) }
  }
}
