extension SerialScheduler {
  /// What the scheduler has done and has yet to do.
  public var statistics: SchedulerStatistics {
    // Those that have begun first: they have been accepted before.
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

  /// Whether the longest wait and the longest run are measured, which costs readings of the clock. Setting it to false
  /// forgets them.
  public var measuresTime: Bool {
    get { core.instruments.withLock { $0.measuresTime } }
    set { change { $0.measuresTime = newValue } }
  }

  /// Who is told of events that hold the scheduler for long.
  public var watchdog: SchedulerWatchdog? {
    get { core.instruments.withLock { $0.watchdog } }
    set {
      // The one before goes when the lock has been released: its closure is not ours.
      _ = change { instruments in
        defer { instruments.watchdog = newValue }
        return instruments.watchdog
      }
    }
  }

  private func change<Result>(_ body: (inout SchedulerInstruments) -> Result) -> Result {
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

  private func startWatching(_ action: SchedulerInstruments.TimerAction) {
    guard case .start(let delay, let generation) = action else { return }
    _ = ClockTimer.start(after: delay, on: core.time.clock) { [weak self] in self?.lookAtRunning(generation) }
  }

  private func lookAtRunning(_ generation: Int) {
    let now = core.time.now
    let (overdue, timer, watchdog) = core.instruments.withLock { instruments in
      let (overdue, timer) = instruments.look(at: now, generation: generation)
      return (overdue, timer, instruments.watchdog)
    }
    if let watchdog {
      for origin in overdue {
        watchdog.report(SchedulerWatchdog.Report(scheduler: name, origin: origin, limit: watchdog.limit))
      }
    }
    startWatching(timer)
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
