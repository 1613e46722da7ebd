import Dispatch

/// Looks for waits that can never end, and lets one of each cycle give way. Each wait is looked at 20 ms after its begin,
/// then after twice the time, and so on up to a second. No event must therefore start a search of its own.
enum WaitWatch {
  /// When a wait is looked at next, in milliseconds.
  struct Schedule {
    private static let longestInterval = 1_000

    private(set) var next = CoarseTime.now.milliseconds + firstInterval
    private var interval = firstInterval

    mutating func isDue(at now: Int) -> Bool {
      if next > now { return false }
      interval = min(interval * 2, Self.longestInterval)
      next = now + interval
      return true
    }
  }

  private struct State {
    var waits = NumberedList<TaskWait>()
    /// Operations that wait while others may wait for them, and groups whose members wait.
    var suspects: [ObjectIdentifier: (operation: WeakOperation, schedule: Schedule)] = [:]
    /// When the next timer fires. A timer for a later time may fire as well.
    var timerTime: Int?
  }

  static let firstInterval = 20
  private static let state = Locked(State())
  /// A serial queue, which gets a thread even while other work blocks all threads of the global queues.
  private static let queue = DispatchQueue(label: "Operations.waits")

  /// The waits that have not been refused.
  static var waits: [TaskWait] { state.withLock { $0.waits.elements.filter { $0.refusal == nil } } }

  /// Accesses the waits of tasks, and their properties, under their lock.
  static func withWaits<Result>(_ body: (inout NumberedList<TaskWait>) -> Result) -> Result {
    state.withLock { body(&$0.waits) }
  }

  static func begin(_ wait: TaskWait) {
    schedule { state in
      wait.number = state.waits.append(wait)
      return wait.schedule.next
    }
  }

  /// Watches an operation as long as it waits, or its members wait, for more than a slot.
  static func watch(_ operation: AsyncOperation) {
    let suspect = (operation: WeakOperation(operation), schedule: Schedule())
    schedule { state in
      // A released operation may have had the same address.
      if let known = state.suspects[ObjectIdentifier(operation)], known.operation.operation != nil { return nil }
      state.suspects[ObjectIdentifier(operation)] = suspect
      return suspect.schedule.next
    }
  }

  /// Looks at the time that `change` returns, unless a timer fires before.
  private static func schedule(_ change: (inout State) -> Int?) {
    let time = state.withLock { state -> Int? in
      guard let time = change(&state), time < state.timerTime ?? .max else { return nil }
      state.timerTime = time
      return time
    }
    guard let time else { return }
    queue.asyncAfter(deadline: .now() + .milliseconds(max(time - CoarseTime.now.milliseconds, 0) + 1)) { look() }
  }

  private static func look() {
    let now = CoarseTime.now.milliseconds
    let (waits, suspects) = state.withLock { state in
      state.timerTime = nil
      let suspects = state.suspects.filter { $0.value.schedule.next <= now }
      for id in suspects.keys { state.suspects[id] = nil }
      return (state.waits.elements.filter { $0.schedule.isDue(at: now) }, suspects.values)
    }
    let operations = suspects.compactMap(\.operation.operation)
    let snapshot = WaitSnapshot(of: operations, waits: waits)
    let hasGivenWay = snapshot.giveWay()
    // At most a tenth of the time is spent on searches.
    let end = CoarseTime.now.milliseconds
    let earliest = end + (hasGivenWay ? firstInterval : max(firstInterval, (end - now) * 10))
    schedule { state in
      for var suspect in suspects where suspect.operation.operation.map(snapshot.isSuspect) == true {
        _ = suspect.schedule.isDue(at: now)
        let id = suspect.operation.id
        state.suspects[id] = state.suspects[id] ?? suspect
      }
      let times = state.waits.elements.map(\.schedule.next) + state.suspects.values.map(\.schedule.next)
      return times.min().map { max($0, earliest) }
    }
  }
}
