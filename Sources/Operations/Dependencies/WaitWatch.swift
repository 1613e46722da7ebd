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

  private struct Suspect {
    let operation: WeakOperation
    var schedule: Schedule
  }

  private struct State {
    var waits = NumberedList<TaskWait>()
    /// Operations that wait while others may wait for them, and groups whose members wait.
    var suspects: [ObjectIdentifier: Suspect] = [:]
    /// When the next timer fires. A timer for a later time may fire as well.
    var timerTime: Int?

    /// Returns whether the caller must set a timer for this time.
    mutating func needsTimer(at time: Int) -> Bool {
      if let timerTime, timerTime <= time { return false }
      timerTime = time
      return true
    }
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
    let time = wait.schedule.next
    let needsTimer = state.withLock { state in
      wait.number = state.waits.append(wait)
      return state.needsTimer(at: time)
    }
    if needsTimer { setTimer(at: time) }
  }

  /// Watches an operation as long as it waits, or its members wait, for more than a slot.
  static func watch(_ operation: AsyncOperation) {
    let schedule = Schedule()
    let needsTimer = state.withLock { state in
      // A released operation may have had the same address.
      if let known = state.suspects[ObjectIdentifier(operation)], known.operation.operation != nil { return false }
      state.suspects[ObjectIdentifier(operation)] = Suspect(operation: WeakOperation(operation), schedule: schedule)
      return state.needsTimer(at: schedule.next)
    }
    if needsTimer { setTimer(at: schedule.next) }
  }

  private static func setTimer(at time: Int) {
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
    let time = state.withLock { state -> Int? in
      for var suspect in suspects where suspect.operation.operation.map(snapshot.isSuspect) == true {
        _ = suspect.schedule.isDue(at: now)
        let id = suspect.operation.id
        state.suspects[id] = state.suspects[id] ?? suspect
      }
      let times = state.waits.elements.map(\.schedule.next) + state.suspects.values.map(\.schedule.next)
      guard let next = times.min() else { return nil }
      let time = max(next, earliest)
      return state.needsTimer(at: time) ? time : nil
    }
    if let time { setTimer(at: time) }
  }
}
