struct SchedulerInstruments {
  /// A timer for the caller to start after releasing the lock.
  typealias Alarm = (timer: ClockTimer, delay: Duration)

  /// The longest times, or nil if the scheduler does not record times.
  private(set) var longest: (wait: Duration?, run: Duration?)?
  private(set) var watchdog: SchedulerWatchdog?

  /// The events and jobs that occupy the scheduler, innermost last. An event can run while another one waits.
  private var running: [(origin: EventOrigin?, began: Duration)] = []
  /// The number of reported events. They are the outermost ones, because those began first.
  private var reportedCount = 0
  /// The timer for the first event that has not been reported. An earlier timer has no effect.
  private var timer: ClockTimer?

  var recordsTimings: Bool {
    get { longest != nil }
    set { longest = newValue ? longest ?? (nil, nil) : nil }
  }

  mutating func recordWait(_ duration: Duration) {
    if let longest { self.longest?.wait = max(longest.wait ?? .zero, duration) }
  }

  mutating func begin(_ origin: EventOrigin?, at now: Duration) -> Alarm? {
    running.append((origin, now))
    return timer == nil ? setTimer(at: now) : nil
  }

  mutating func end(at now: Duration) {
    guard let run = running.popLast() else { return }
    reportedCount = min(reportedCount, running.count)
    if let longest { self.longest?.run = max(longest.run ?? .zero, now - run.began) }
  }

  /// Returns the former watchdog, which the caller releases.
  mutating func replaceWatchdog(with new: SchedulerWatchdog?, at now: Duration) -> (SchedulerWatchdog?, Alarm?) {
    (exchange(&watchdog, with: new), setTimer(at: now))
  }

  /// Returns the watchdog with the events to report to it, or nil if the timer has no effect.
  mutating func timerDidFire(_ timer: ClockTimer, at now: Duration) -> (SchedulerWatchdog, [EventOrigin?], Alarm?)? {
    guard timer === self.timer, let watchdog else { return nil }
    let overdue = running.dropFirst(reportedCount).prefix { now - $0.began >= watchdog.limit }
    reportedCount += overdue.count
    return (watchdog, overdue.map(\.origin), setTimer(at: now))
  }

  private mutating func setTimer(at now: Duration) -> Alarm? {
    timer = nil
    guard let watchdog, let first = running.dropFirst(reportedCount).first else { return nil }
    let timer = ClockTimer()
    self.timer = timer
    return (timer, watchdog.limit - (now - first.began))
  }
}

extension SerialScheduler {
  /// Changes the instruments. While any are in use, every event takes the slow path.
  func updateInstruments<Result>(_ body: (inout SchedulerInstruments) -> Result) -> Result {
    instruments.withLock { instruments in
      let result = body(&instruments)
      set(.instrumented, to: instruments.recordsTimings || instruments.watchdog != nil)
      return result
    }
  }

  func runInstrumented(_ origin: EventOrigin?, _ event: () -> Void) {
    if mode.isPlain { return event() }
    let start = time.now
    let alarm = instruments.withLock { $0.begin(origin, at: start) }
    startWatchdogTimer(alarm)
    event()
    let end = time.now
    instruments.withLock { $0.end(at: end) }
  }

  func recordingWait(of body: __owned @escaping EventTicket.Body) -> EventTicket.Body {
    let start = time.now
    return { [self] refusal in
      if refusal == nil {
        let wait = time.now - start
        instruments.withLock { $0.recordWait(wait) }
      }
      body(refusal)
    }
  }
}
