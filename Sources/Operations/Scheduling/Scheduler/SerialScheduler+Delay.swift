extension SerialScheduler {
  /// Schedules an event to run after a delay.
  ///
  /// When the delay is over, the event runs after everything that has been scheduled by then. Events that are due at
  /// the same time run in the order in which they were scheduled. A delay of zero or less is over immediately.
  ///
  /// The scheduler stays alive until the event has run. A shutdown drops the event, and a scheduler that has been
  /// shut down drops it immediately. Both are counted by ``SchedulerStatistics/eventsDropped``.
  ///
  /// - Returns: A handle that cancels the event. You can discard it.
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

  /// Schedules an event on the main actor, whose state it may access, to run after a delay.
  ///
  /// - Returns: A handle that cancels the event. You can discard it.
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

  /// Replaces the timer if it does not fire at the first deadline.
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

  /// Accepts the events that are due. This takes a single step, so that no other timer accepts later events in
  /// between.
  private func postDue(_ generation: Int) {
    let now = core.time.now
    core.post(enqueue: enqueue) { $0.acceptDue(at: now, generation) }
    updateTimer()
  }
}

/// An event that was scheduled for a later time and can be cancelled until it begins.
public final class ScheduledEvent: Sendable {
  /// A reference to the scheduler. It never changes; `weak let` requires Swift 6.3 (SE-0481).
  private struct Home: @unchecked Sendable {
    /// The main scheduler is held strongly: it lives forever, and leak checkers would report a weak reference to it.
    let main: SerialScheduler?
    weak var other: SerialScheduler?
  }

  private let ticket: EventTicket
  private let home: Home

  init(_ ticket: EventTicket, _ scheduler: SerialScheduler) {
    self.ticket = ticket
    home = scheduler.isMain ? Home(main: scheduler) : Home(main: nil, other: scheduler)
  }

  /// Cancels the event if it has not begun, and releases its closure.
  ///
  /// After a call on the scheduler, an event that has not begun never runs.
  public func cancel() { (home.main ?? home.other)?.cancel(ticket) }
}
