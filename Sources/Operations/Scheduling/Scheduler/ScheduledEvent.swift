extension SerialScheduler {
  /// Schedules an event to run after a delay.
  ///
  /// The event runs after all events that were scheduled before its delay was over. Events that are due at the same
  /// time run in the order in which they were scheduled. A delay of zero or less is over immediately.
  ///
  /// The scheduler stays alive until the event has run. A shutdown drops the event, and a scheduler that has been shut
  /// down drops it immediately. ``SchedulerStatistics/eventsDropped`` counts both.
  ///
  /// - Returns: A handle that cancels the event. You can discard it.
  @discardableResult
  public func schedule(
    after delay: Duration,
    _ event: __owned @escaping @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> ScheduledEvent {
    let ticket = EventTicket(EventOrigin(file: file, line: line))
    if delay <= .zero {
      let isAccepted = accept(ticket, consume event)
      if !isAccepted { mailbox.withLock { $0.eventsDropped += 1 } }
    } else {
      let deadline = time.now.adding(delay)
      let body = EventTicket.body(of: consume event)
      mailbox.withLock { $0.delay(ticket, body, until: deadline) }
      updateTimer()
    }
    return ScheduledEvent(ticket, self)
  }

  /// Schedules an event to run on the main actor after a delay. The event can access the actor's state.
  @discardableResult
  public static func scheduleOnMain(
    after delay: Duration,
    _ event: __owned @escaping @MainActor @Sendable () -> Void,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> ScheduledEvent {
    main.schedule(after: delay, onMain(consume event), file: file, line: line)
  }

  func cancel(_ ticket: EventTicket) {
    withdraw(ticket)
    updateTimer()
  }

  func updateTimer() {
    guard let change = mailbox.withLock({ $0.alarmChange() }) else { return }
    change.outdated?.cancel()
    guard let (deadline, timer) = change.new else { return }
    timer.start(after: deadline.subtracting(time.now), on: time.clock) { [self] in
      let now = time.now
      // Accepts all due events under one lock, so that no other timer accepts later events in between.
      withOpenSegment { $0.acceptDue(at: now, by: timer) }
      updateTimer()
    }
  }
}

/// An event that was scheduled for a later time and can be cancelled until it begins.
public final class ScheduledEvent: Sendable {
  private let withdraw: @Sendable () -> Void

  init(_ ticket: EventTicket, _ scheduler: SerialScheduler) {
    if scheduler.isMain {
      // Leak checkers would report a weak reference to the main scheduler.
      withdraw = { scheduler.cancel(ticket) }
    } else {
      withdraw = { [weak scheduler] in scheduler?.cancel(ticket) }
    }
  }

  /// Cancels the event if it has not begun, and releases its closure, for the main scheduler on the main thread.
  ///
  /// If the caller is on the scheduler and the event has not begun, the event never runs.
  public func cancel() { withdraw() }
}
