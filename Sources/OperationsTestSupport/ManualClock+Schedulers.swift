public import Operations

extension ManualClock {
  /// Moves the clock, and has schedulers that follow it run what is due, each event at its time.
  ///
  /// ```swift
  /// let clock = ManualClock()
  /// let scheduler = SerialScheduler(name: "under test", clock: clock)
  /// scheduler.schedule(after: .seconds(60)) { refresh() }
  /// await clock.advance(by: .seconds(60), draining: scheduler)
  /// ```
  ///
  /// The clock stops at every time that somebody waits for, until the schedulers have nothing left to run: so what an
  /// event schedules for later counts from its own time, and comes in the same call if it is due. When this returns,
  /// everything that was due has been run: a scheduler that is suspended is waited for until it goes on.
  ///
  /// - Precondition: `duration` is not negative.
  public func advance(by duration: Duration, draining first: SerialScheduler, _ others: SerialScheduler...) async {
    refuseToGoBack(by: duration)
    let schedulers = [first] + others
    let goal = min(now.advanced(by: duration), .last)
    await Self.settle(schedulers)
    while let next = nextDeadline, next < goal {
      advance(by: now.duration(to: next))
      await Self.settle(schedulers)
    }
    advance(by: max(now.duration(to: goal), .zero))
    await Self.settle(schedulers)
  }

  /// One may have scheduled something on another.
  private static func settle(_ schedulers: [SerialScheduler]) async {
    repeat {
      for scheduler in schedulers { await scheduler.drained() }
    } while schedulers.contains { $0.statistics.eventsQueued + $0.statistics.jobsQueued > 0 }
  }
}
