/// What a scheduler measures and watches when it is asked to.
struct SchedulerInstruments {
  /// What to do about the watchdog's timer.
  enum TimerAction {
    case none
    case start(after: Duration)
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
  var watchdog: SchedulerWatchdog?

  /// Innermost last: an event may be run while another waits.
  private var running: [Current] = []
  private var isTimerRunning = false

  var isIdle: Bool { !measuresTime && watchdog == nil }

  mutating func noteWait(_ duration: Duration) {
    if measuresTime { longestWait = max(longestWait ?? .zero, duration) }
  }

  mutating func begin(_ origin: EventOrigin?, at now: Duration) -> TimerAction {
    running.append(Current(origin: origin, began: now))
    guard let watchdog, !isTimerRunning else { return .none }
    isTimerRunning = true
    return .start(after: watchdog.limit)
  }

  mutating func end(at now: Duration) {
    guard let current = running.popLast(), measuresTime else { return }
    longestRun = max(longestRun ?? .zero, now - current.began)
  }

  /// The timer has gone off, which was started for this event or one before it.
  mutating func look(at now: Duration) -> (overdue: EventOrigin??, timer: TimerAction) {
    isTimerRunning = false
    guard let watchdog, let last = running.indices.last else { return (nil, .none) }
    let elapsed = now - running[last].began
    if running[last].isReported { return (nil, .none) }
    if elapsed >= watchdog.limit {
      running[last].isReported = true
      return (.some(running[last].origin), .none)
    }
    isTimerRunning = true
    return (nil, .start(after: watchdog.limit - elapsed))
  }
}
