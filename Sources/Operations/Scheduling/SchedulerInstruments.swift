/// What a scheduler measures and watches when it is asked to.
struct SchedulerInstruments {
  /// What to do about the watchdog's timer.
  enum TimerAction {
    case none
    /// To come back with the number.
    case start(after: Duration, generation: Int)
  }

  /// An event that holds the scheduler.
  private struct Current {
    let origin: EventOrigin?
    let began: Duration
    var isReported = false
  }

  var measuresTime = false {
    didSet { if !measuresTime { (longestWait, longestRun) = (nil, nil) } }
  }
  private(set) var longestWait: Duration?
  private(set) var longestRun: Duration?
  var watchdog: SchedulerWatchdog? {
    didSet {
      // What was started for the one before does not know the new limit.
      generation += 1
      isTimerRunning = false
    }
  }

  /// Innermost last: an event may be run while another waits.
  private var running: [Current] = []
  private var isTimerRunning = false
  private var generation = 0

  var isIdle: Bool { !measuresTime && watchdog == nil }

  mutating func noteWait(_ duration: Duration) {
    if measuresTime { longestWait = max(longestWait ?? .zero, duration) }
  }

  mutating func begin(_ origin: EventOrigin?, at now: Duration) -> TimerAction {
    running.append(Current(origin: origin, began: now))
    guard let watchdog, !isTimerRunning else { return .none }
    isTimerRunning = true
    return .start(after: watchdog.limit, generation: generation)
  }

  mutating func end(at now: Duration) {
    guard let current = running.popLast(), measuresTime else { return }
    longestRun = max(longestRun ?? .zero, now - current.began)
  }

  /// The timer has gone off, which was started for one of these events or one before them.
  ///
  /// - Returns: Where those were scheduled that have been at it for too long.
  mutating func look(at now: Duration, generation: Int) -> (overdue: [EventOrigin?], timer: TimerAction) {
    guard generation == self.generation, let watchdog else { return ([], .none) }
    isTimerRunning = false
    var overdue: [EventOrigin?] = []
    for index in running.indices where !running[index].isReported && now - running[index].began >= watchdog.limit {
      running[index].isReported = true
      overdue.append(running[index].origin)
    }
    guard let next = running.first(where: { !$0.isReported }) else { return (overdue, .none) }
    isTimerRunning = true
    return (overdue, .start(after: watchdog.limit - (now - next.began), generation: generation))
  }
}
