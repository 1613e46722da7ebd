import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Delayed events under a clock that the test moves.
@Suite(.timeLimit(.minutes(5)))
struct VirtualTimeTests {
  private let clock = ManualClock()
  private let journal = Journal<String>()

  private func scheduler(_ name: String = "under test") -> SerialScheduler { SerialScheduler(name: name, clock: clock) }

  private func note(_ name: String) -> @Sendable () -> Void {
    { [journal, clock] in journal.write("\(name) at \(clock.now.offset.components.seconds)") }
  }

  @Test func eventsRunInTheOrderOfTheirTimesAndOfScheduling() async {
    let scheduler = scheduler()
    scheduler.schedule(after: .seconds(3), note("c"))
    scheduler.schedule(after: .seconds(1), note("a"))
    scheduler.schedule(after: .seconds(3), note("d"))
    scheduler.schedule(after: .seconds(2), note("b"))
    scheduler.schedule(after: .zero, note("now"))
    await clock.advance(by: .seconds(3), draining: scheduler)
    #expect(journal.entries == ["now at 0", "a at 1", "b at 2", "c at 3", "d at 3"])
    #expect(clock.sleepers == 0)
  }

  @Test func whatAnEventSchedulesCountsFromItsTime() async {
    let scheduler = scheduler()
    scheduler.schedule(after: .seconds(10)) { [note = note("second")] in scheduler.schedule(after: .seconds(5), note) }
    await clock.advance(by: .seconds(14), draining: scheduler)
    #expect(journal.entries == [])
    await clock.advance(by: .seconds(1), draining: scheduler)
    #expect(journal.entries == ["second at 15"])
  }

  @Test func manyPeriodsPassInOneCall() async {
    let scheduler = scheduler()
    @Sendable func tick(_ note: @escaping @Sendable () -> Void) {
      note()
      scheduler.schedule(after: .seconds(1)) { tick(note) }
    }
    scheduler.schedule { [note = note("tick")] in tick(note) }
    await clock.advance(by: .seconds(3), draining: scheduler)
    #expect(journal.entries == ["tick at 0", "tick at 1", "tick at 2", "tick at 3"])
    scheduler.shutDown()
  }

  @Test func severalSchedulersFollowOneClock() async {
    let (a, b) = (scheduler("a"), scheduler("b"))
    a.schedule(after: .seconds(1)) { [note = note("b")] in b.schedule(after: .seconds(1), note) }
    await clock.advance(by: .seconds(2), draining: a, b)
    #expect(journal.entries == ["b at 2"])
  }

  @Test func oneTimerWaitsForTheFirstAndNoneIsLeftBehind() async {
    let scheduler = scheduler()
    let events = (1...5).map { scheduler.schedule(after: .seconds($0), note("\($0)")) }
    #expect(clock.sleepers == 1)
    for event in events.dropLast() { event.cancel() }
    #expect(clock.sleepers == 1)
    await clock.advance(by: .seconds(5), draining: scheduler)
    #expect(journal.entries == ["5 at 5"])
    scheduler.schedule(after: .seconds(1), note("cancelled")).cancel()
    #expect(clock.sleepers == 0)
  }

  @Test func eventThatIsDueAndHasNotBegunCanBeCancelled() async {
    let scheduler = scheduler()
    scheduler.isSuspended = true
    let event = scheduler.schedule(after: .seconds(1), note("cancelled"))
    clock.advance(by: .seconds(1))
    event.cancel()
    scheduler.isSuspended = false
    await scheduler.drained()
    #expect(journal.entries == [])
  }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func shutdownDropsWhatIsNotDue(mode: SerialScheduler.ShutdownMode) async {
    let live = LiveCount()
    let scheduler = scheduler()
    do {
      let token = LiveCount.Token(live)
      scheduler.schedule(after: .seconds(1)) { [note = note("late")] in withExtendedLifetime(token) { note() } }
    }
    scheduler.shutDown(mode)
    await live.none()
    #expect(clock.sleepers == 0)
    await clock.advance(by: .seconds(1), draining: scheduler)
    #expect(journal.entries == [])
    scheduler.schedule(after: .seconds(1), note("refused"))
    #expect(clock.sleepers == 0)
  }

  @Test func schedulerLivesUntilItsDelayedEventsHaveRun() async {
    let live = LiveCount()
    weak var released: SerialScheduler?
    do {
      let scheduler = scheduler()
      released = scheduler
      let token = LiveCount.Token(live)
      scheduler.schedule(after: .seconds(1)) { [note = note("late")] in withExtendedLifetime(token) { note() } }
    }
    #expect(released != nil)
    clock.advance(by: .seconds(1))
    await live.none()
    #expect(journal.entries == ["late at 1"])
  }

  @Test func veryLongAndNegativeDelaysAreNoMistake() async {
    let scheduler = scheduler()
    let never = scheduler.schedule(after: .seconds(Int64.max), note("never"))
    scheduler.schedule(after: .seconds(-1), note("now"))
    await scheduler.drained()
    #expect(journal.entries == ["now at 0"])
    never.cancel()
  }

  @Test func watchdogNamesWhoHoldsTheScheduler() async {
    let scheduler = scheduler("busy")
    let gate = Gate()
    let begun = Gate()
    scheduler.watchdog = SchedulerWatchdog(limit: .seconds(2)) { [journal] report in
      journal.write("\(report)")
    }
    scheduler.schedule {}
    scheduler.schedule { [note = note("end")] in
      begun.open()
      gate.pass()
      note()
    }
    let line = UInt(#line)
    await begun.opened()
    clock.advance(by: .seconds(1))
    #expect(journal.entries == [])
    clock.advance(by: .seconds(1))
    await journal.reaches(1)
    let report = journal.entries[0]
    #expect(report.contains("“busy”") && report.contains("VirtualTimeTests.swift:\(line - 5)"), "\(report)")
    clock.advance(by: .seconds(10))
    gate.open()
    await scheduler.drained()
    #expect(journal.count == 2, "one report an event")
    scheduler.watchdog = nil
  }

  @Test func watchdogReportsAnEventAlsoAfterOneThatWasRunWithinIt() async {
    let (scheduler, other) = (scheduler("outer"), scheduler("inner"))
    let begun = Gate()
    let gates = [Gate(), Gate()]
    let ended = Gate()
    scheduler.watchdog = SchedulerWatchdog(limit: .seconds(2)) { [journal] report in
      journal.write("\(report.origin!.line)")
    }
    scheduler.schedule {
      try? other.wait {
        try? scheduler.wait {
          begun.open()
          gates[0].pass()
        }
        ended.open()
      }
      gates[1].pass()
    }
    await begun.opened()
    clock.advance(by: .seconds(2))
    #expect(journal.count == 2)
    gates[0].open()
    await ended.opened()
    clock.advance(by: .seconds(10))
    gates[1].open()
    await scheduler.drained()
    #expect(Set(journal.entries).count == 2 && journal.count == 2)
    scheduler.watchdog = nil
  }

  @Test func newWatchdogDoesNotWaitForTheTimerOfTheOneBefore() async {
    let scheduler = scheduler()
    let gate = Gate()
    let begun = Gate()
    scheduler.watchdog = SchedulerWatchdog(limit: .seconds(1000)) { _ in Issue.record("the old one") }
    scheduler.schedule {}
    await scheduler.drained()
    scheduler.watchdog = SchedulerWatchdog(limit: .seconds(1)) { [journal] report in journal.write("\(report.limit)") }
    scheduler.schedule {
      begun.open()
      gate.pass()
    }
    await begun.opened()
    clock.advance(by: .seconds(1))
    #expect(journal.count == 1)
    gate.open()
    await scheduler.drained()
    clock.advance(by: .seconds(1000))
  }

  @Test func longestWaitAndRunAreMeasuredWhenAskedFor() async {
    let scheduler = scheduler()
    #expect(scheduler.statistics.longestWait == nil && scheduler.statistics.longestRun == nil)
    scheduler.recordsTimings = true
    scheduler.schedule { [clock] in clock.advance(by: .seconds(3)) }
    await scheduler.drained()
    #expect(scheduler.statistics.longestRun == .seconds(3))
    scheduler.isSuspended = true
    scheduler.schedule {}
    clock.advance(by: .seconds(7))
    scheduler.isSuspended = false
    await scheduler.drained()
    #expect(scheduler.statistics.longestWait == .seconds(7))
    scheduler.recordsTimings = false
    #expect(scheduler.statistics.longestWait == nil && scheduler.statistics.longestRun == nil)
  }
}
