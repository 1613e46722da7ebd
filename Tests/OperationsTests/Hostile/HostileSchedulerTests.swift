import Foundation
import Operations
import OperationsTestSupport
import Testing

/// What one can do to a scheduler that one had better not. Mistakes are in ``MisuseTests``.
@Suite(.timeLimit(.minutes(5)))
struct HostileSchedulerTests {
  static let cases = [
    HostileCase("an event for the end of time, cancelled, and one for a time long past", gets: "1 run, 0 dropped") {
      let scheduler = SerialScheduler(name: "s")
      scheduler.schedule(after: .longest) {}.cancel()
      scheduler.schedule(after: .shortest) {}
      await scheduler.drained()
      return "\(scheduler.statistics.eventsRun) run, \(scheduler.statistics.eventsDropped) dropped"
    },
    HostileCase("events for the end of time, and after", gets: "1 run") {
      let clock = ManualClock()
      clock.advance(by: .seconds(1))
      let scheduler = SerialScheduler(name: "s", clock: clock)
      scheduler.watchdog = SchedulerWatchdog(limit: .seconds(1)) { _ in }
      scheduler.schedule(after: .seconds(Int64.max)) {}
      scheduler.schedule(after: .longest) {}
      await clock.advance(by: .longest, draining: scheduler)
      scheduler.schedule(after: .seconds(1)) {}
      await clock.advance(by: .longest, draining: scheduler)
      defer { scheduler.shutDown() }
      return "\(scheduler.statistics.eventsRun) run"
    },
    HostileCase("a wait that may take forever, under a watchdog that never barks", gets: "7") {
      let scheduler = SerialScheduler(name: "s")
      scheduler.watchdog = SchedulerWatchdog(limit: .longest) { _ in }
      scheduler.recordsTimings = true
      return try await onThread { "\(try scheduler.wait(timeout: .longest) { 7 })" }.get()
    },
    HostileCase("a wait whose time is long over", gets: "timedOut") {
      let scheduler = SerialScheduler(name: "s")
      let end = await scheduler.held()
      defer { end.open() }
      return try await onThread { "\(try scheduler.wait(timeout: .shortest) { 7 })" }.get()
    },
    HostileCase("schedule for later after the shutdown", gets: "2 dropped") {
      let scheduler = SerialScheduler(name: "s")
      scheduler.shutDown()
      for delay in [Duration.zero, .seconds(1)] {
        scheduler.schedule(after: delay) { Issue.record("It was run.") }.cancel()
      }
      return "\(scheduler.statistics.eventsDropped) dropped"
    },
    HostileCase("its queue suspended and resumed, many times", gets: "10 run") {
      let scheduler = SerialScheduler(name: "s")
      for _ in 0..<10 {
        scheduler.queue.isSuspended = true
        scheduler.schedule { scheduler.queue.isSuspended = false }
        scheduler.isSuspended = true
        scheduler.isSuspended = false
      }
      await scheduler.drained()
      return "\(scheduler.statistics.eventsRun) run"
    },
    HostileCase("an event that cancels itself, twice", gets: "1 run") {
      let clock = ManualClock()
      let scheduler = SerialScheduler(name: "s", clock: clock)
      let scheduled = Journal<ScheduledEvent>()
      scheduled.write(scheduler.schedule(after: .seconds(1)) { for event in scheduled.entries { event.cancel() } })
      await clock.advance(by: .seconds(1), draining: scheduler)
      for event in scheduled.entries { event.cancel() }
      return "\(scheduler.statistics.eventsRun) run"
    },
    HostileCase("an event cancelled when its scheduler has gone", gets: "nothing") {
      var scheduler: SerialScheduler? = SerialScheduler(name: "s")
      let event = scheduler?.schedule(after: .zero) {}
      await scheduler?.drained()
      scheduler = nil
      event?.cancel()
      return "nothing"
    },
    HostileCase("a gate that is opened twice, and from within", gets: "2 passed") {
      let (gate, passed) = (Gate(), Journal<Int>())
      gate.whenOpen {
        gate.open()
        gate.whenOpen { passed.write(2) }
        passed.write(1)
      }
      gate.open()
      gate.open()
      await gate.opened()
      return "\(passed.count) passed"
    },
    HostileCase("a clock that is moved by whom it wakes", gets: "3.0 seconds") {
      let (clock, delay) = (ManualClock(), DelayOperation(.seconds(1)))
      delay.clock = clock
      delay.addObserver(OperationObserver(didFinish: { _ in clock.advance(by: .seconds(1)) }))
      OperationQueue().addOperation(delay)
      await clock.waitForSleepers()
      clock.advance(by: .seconds(2))
      return "\(clock.now.offset)"
    },
  ]

  @Test(arguments: cases) func getsWhatIsExpected(_ line: HostileCase) async { await line.check() }
}
