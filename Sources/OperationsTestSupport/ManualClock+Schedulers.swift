public import Operations

extension ManualClock {
  /// Moves the clock, and waits until the schedulers have run all due events, each at its time.
  ///
  /// ```swift
  /// let clock = ManualClock()
  /// let scheduler = SerialScheduler(name: "under test", clock: clock)
  /// scheduler.schedule(after: .seconds(60)) { refresh() }
  /// await clock.advance(by: .seconds(60), draining: scheduler)
  /// ```
  ///
  /// The clock stops at the deadline of each sleeper until the schedulers have nothing left to run. An event can
  /// schedule another event after a delay. The delay begins at the time of the first event, and the second event runs
  /// in the same call if it is due.
  ///
  /// If a scheduler is suspended, the call waits until the scheduler is resumed.
  ///
  /// - Precondition: `duration` is not negative.
  public func advance(by duration: Duration, draining first: SerialScheduler, _ others: SerialScheduler...) async {
    refuseToGoBack(by: duration)
    let schedulers = [first] + others
    let goal = min(now.advanced(by: duration), .last)
    await Self.settle(schedulers)
    while let next = nextDeadline, next < goal {
      advance(by: max(now.duration(to: next), .zero))
      await Self.settle(schedulers)
    }
    advance(by: max(now.duration(to: goal), .zero))
    await Self.settle(schedulers)
  }

  /// Waits until the schedulers have nothing left to run. One scheduler may have scheduled an event on another.
  private static func settle(_ schedulers: [SerialScheduler]) async {
    // What has begun on a scheduler since it was drained is neither queued nor necessarily over.
    var before: [Int]
    repeat {
      before = schedulers.map(\.begunSoFar)
      for scheduler in schedulers { await scheduler.drained() }
    } while before != schedulers.map(\.begunSoFar)
      || schedulers.contains { $0.statistics.eventsQueued + $0.statistics.jobsQueued > 0 }
  }
}
