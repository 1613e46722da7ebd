extension SerialScheduler {
  /// Has an event run when `delay` is over, after everything that has been scheduled by then. Events of the same time
  /// are run in the order in which they were scheduled.
  ///
  /// A delay of nothing, or less, is over at once. The scheduler lives until the event has been run. A shutdown drops
  /// it, and a scheduler that has been shut down does so at once: ``SchedulerStatistics/eventsDropped`` has it.
  ///
  /// - Returns: What cancels the event, and need not be kept.
  @discardableResult
  public func schedule(
    after delay: Duration,
    _ event: @escaping @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> ScheduledEvent {
    let ticket = EventTicket(EventOrigin(file: file, line: line))
    if delay <= .zero {
      let isAccepted = accept(ticket, event)
      if !isAccepted { core.mailbox.withLock { $0.noteRefused() } }
    } else {
      let deadline = core.time.now.adding(delay)
      core.mailbox.withLock { $0.delay(ticket, EventTicket.body(of: event), until: deadline) }
      updateTimer()
    }
    return ScheduledEvent(ticket, self)
  }

  /// Has an event run when `delay` is over that may touch what belongs to the main actor.
  ///
  /// - Returns: What cancels the event, and need not be kept.
  @discardableResult
  public static func scheduleOnMain(
    after delay: Duration,
    _ event: @escaping @MainActor @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> ScheduledEvent {
    main.schedule(after: delay, { MainActor.assumeIsolated(event) }, file: file, line: line)
  }

  func cancel(_ ticket: EventTicket) {
    takeBack(ticket)
    updateTimer()
  }

  /// Has the timer go off when the first event is due, if there is one.
  func updateTimer() {
    guard let change = core.mailbox.withLock({ $0.delays.timerChange() }) else { return }
    change.outdated?.cancel()
    guard let deadline = change.deadline else { return }
    let timer = ClockTimer.start(after: deadline.subtracting(core.time.now), on: core.time.clock) {
      self.postDue(change.generation)
    }
    let isWanted = core.mailbox.withLock { $0.delays.noteTimer(timer, change.generation) }
    if !isWanted { timer.cancel() }
  }

  /// At once, or another timer could come in between with later ones.
  private func postDue(_ generation: Int) {
    let now = core.time.now
    core.post(enqueue: enqueue) { $0.acceptDue(at: now, generation) }
    updateTimer()
  }
}
