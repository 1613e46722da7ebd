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

  var recordsTimings = false {
    didSet { if !recordsTimings { (longestWait, longestRun) = (nil, nil) } }
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

  var isIdle: Bool { !recordsTimings && watchdog == nil }

  mutating func noteWait(_ duration: Duration) {
    if recordsTimings { longestWait = max(longestWait ?? .zero, duration) }
  }

  mutating func begin(_ origin: EventOrigin?, at now: Duration) -> TimerAction {
    running.append(Current(origin: origin, began: now))
    guard let watchdog, !isTimerRunning else { return .none }
    isTimerRunning = true
    return .start(after: watchdog.limit, generation: generation)
  }

  mutating func end(at now: Duration) {
    guard let current = running.popLast(), recordsTimings else { return }
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

extension SerialScheduler {
  func change<Result>(_ body: (inout SchedulerInstruments) -> Result) -> Result {
    core.instruments.withLock { instruments in
      let result = body(&instruments)
      if instruments.isIdle { core.mode.remove(.instrumented) } else { core.mode.insert(.instrumented) }
      return result
    }
  }

  /// Runs an event or a job, measured and watched.
  func watch(_ origin: EventOrigin?, _ event: () -> Void) {
    let start = core.time.now
    let timer = core.instruments.withLock { $0.begin(origin, at: start) }
    startWatching(timer)
    event()
    let end = core.time.now
    core.instruments.withLock { $0.end(at: end) }
  }

  func measuringWait(of event: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let start = core.time.now
    return { [core] in
      core.noteWait(since: start)
      event()
    }
  }

  func measuringWait(of body: @escaping EventTicket.Body) -> EventTicket.Body {
    let start = core.time.now
    return { [core] refusal in
      if refusal == nil { core.noteWait(since: start) }
      body(refusal)
    }
  }
}

extension SchedulerCore {
  fileprivate func noteWait(since start: Duration) {
    let wait = time.now - start
    instruments.withLock { $0.noteWait(wait) }
  }
}
