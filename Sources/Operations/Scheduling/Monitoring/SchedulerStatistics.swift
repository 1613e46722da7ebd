/// The events and jobs that a ``SerialScheduler`` has run and has yet to run, at one moment.
public struct SchedulerStatistics: Sendable {
  /// The number of events that have finished running.
  ///
  /// The event of a `run` is counted a moment after the caller of `run` resumes. Await ``SerialScheduler/drained()``
  /// before you read an exact number.
  public let eventsRun: Int
  /// The number of accepted events that have not begun, excluding delayed events that are not due.
  public let eventsQueued: Int
  /// The number of events that were replaced by newer ones with the same key.
  public let eventsCoalesced: Int
  /// The number of events that will not run because of the capacity or a shutdown.
  ///
  /// The number includes results and delayed events that reach the scheduler after its shutdown. It excludes cancelled
  /// events, coalesced events, and events for which `schedule`, `run`, `send` or `wait` reported the shutdown to the
  /// caller.
  public let eventsDropped: Int
  /// The number of jobs of actors and tasks that have begun.
  public let jobsRun: Int
  /// The number of jobs that have not begun.
  public let jobsQueued: Int
  /// The longest time that an event waited for its turn, apart from events that were scheduled with a delay. Nil without
  /// ``SerialScheduler/recordsTimings``.
  public let longestWait: Duration?
  /// The longest time that an event or job occupied the scheduler. Nil without ``SerialScheduler/recordsTimings``.
  public let longestRun: Duration?
}

extension SerialScheduler {
  /// The current statistics of the scheduler.
  public var statistics: SchedulerStatistics {
    // The counts are read before the mailbox, so that no event appears to have begun before it was accepted.
    let eventsRun = core.counts.eventsRun
    let eventsBegun = core.counts.eventsBegun
    let jobsBegun = core.counts.jobsBegun
    let times = core.instruments.withLock { ($0.longestWait, $0.longestRun) }
    return core.mailbox.withLock { mailbox in
      SchedulerStatistics(
        eventsRun: eventsRun,
        eventsQueued: mailbox.eventsAccepted - eventsBegun,
        eventsCoalesced: mailbox.eventsCoalesced,
        eventsDropped: mailbox.eventsDropped,
        jobsRun: jobsBegun,
        jobsQueued: mailbox.jobsAccepted - jobsBegun,
        longestWait: times.0,
        longestRun: times.1
      )
    }
  }

  /// Whether the scheduler records the longest wait and the longest run. The default is false.
  ///
  /// Recording reads the clock for every event. Setting the property to false discards the recorded times.
  public var recordsTimings: Bool {
    get { core.instruments.withLock { $0.recordsTimings } }
    set { updateInstruments { $0.recordsTimings = newValue } }
  }
}

/// The recorded times and the watchdog of a scheduler, as a value.
struct SchedulerInstruments {
  /// The change that the watchdog's timer needs.
  enum TimerAction {
    case none
    /// Start a timer, which passes the generation back when it fires.
    case start(after: Duration, generation: Int)
  }

  /// An event that occupies the scheduler.
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
      // The running timer was started with the limit of the previous watchdog.
      generation += 1
      isTimerRunning = false
    }
  }

  /// The running events, innermost last. An event can run while another one waits.
  private var running: [Current] = []
  private var isTimerRunning = false
  private var generation = 0

  var isIdle: Bool { !recordsTimings && watchdog == nil }

  mutating func recordWait(_ duration: Duration) {
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

  /// Finds the events that have exceeded the limit. The timer may have been started for an earlier event.
  ///
  /// - Returns: The origins of the events to report, and the change that the timer needs.
  mutating func timerDidFire(at now: Duration, generation: Int) -> (overdue: [EventOrigin?], timer: TimerAction) {
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
  /// Changes the instruments. If any are in use afterwards, every event takes the slow path.
  func updateInstruments<Result>(_ body: (inout SchedulerInstruments) -> Result) -> Result {
    core.instruments.withLock { instruments in
      let result = body(&instruments)
      if instruments.isIdle { core.mode.remove(.instrumented) } else { core.mode.insert(.instrumented) }
      return result
    }
  }

  /// Runs an event or job, records its time, and starts the watchdog's timer.
  func runInstrumented(_ origin: EventOrigin?, _ event: () -> Void) {
    let start = core.time.now
    let timer = core.instruments.withLock { $0.begin(origin, at: start) }
    startWatchdogTimer(timer)
    event()
    let end = core.time.now
    core.instruments.withLock { $0.end(at: end) }
  }

  /// Returns an event that first records how long it waited, and then runs `event`.
  func recordingWait(of event: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let start = core.time.now
    return { [core] in
      core.recordWait(since: start)
      event()
    }
  }

  func recordingWait(of body: @escaping EventTicket.Body) -> EventTicket.Body {
    let start = core.time.now
    return { [core] refusal in
      if refusal == nil { core.recordWait(since: start) }
      body(refusal)
    }
  }
}

extension SchedulerCore {
  fileprivate func recordWait(since start: Duration) {
    let wait = time.now - start
    instruments.withLock { $0.recordWait(wait) }
  }
}
