import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Events for a time to come, under a clock that the test moves.
@Suite(.timeLimit(.minutes(5)))
struct DelayContractTests {
  private let clock = ManualClock()
  private let scheduler: SerialScheduler
  private let journal = Journal<String>()

  init() { scheduler = SerialScheduler(name: "later", clock: clock) }

  @discardableResult
  private func note(_ text: String, after delay: Duration) -> ScheduledEvent {
    scheduler.schedule(after: delay) { [journal] in journal.write(text) }
  }

  @Test func eventsComeInOrderOfTimeThenOfScheduling() async {
    for (text, seconds) in [("d", 3), ("a", 1), ("e", 3), ("b", 1), ("c", 2), ("never", 10)] {
      note(text, after: .seconds(seconds))
    }
    clock.advance(by: .seconds(3))
    await scheduler.drained()
    #expect(journal.entries == ["a", "b", "c", "d", "e"])
    scheduler.shutDown()
  }

  @Test func noneComesBeforeItsTime() async {
    note("one", after: .seconds(1))
    note("two", after: .seconds(2))
    clock.advance(by: .milliseconds(999))
    await scheduler.drained()
    #expect(journal.entries.isEmpty)
    clock.advance(by: .milliseconds(1))
    await scheduler.drained()
    #expect(journal.entries == ["one"])
    clock.advance(by: .seconds(1))
    await scheduler.drained()
    #expect(journal.entries == ["one", "two"])
  }

  @Test func anEarlierOneThatIsScheduledLaterComesFirst() async {
    note("late", after: .seconds(10))
    clock.advance(by: .seconds(4))
    note("early", after: .seconds(2))
    clock.advance(by: .seconds(2))
    await scheduler.drained()
    #expect(journal.entries == ["early"])
    clock.advance(by: .seconds(4))
    await scheduler.drained()
    #expect(journal.entries == ["early", "late"])
  }

  @Test func oneThatIsDueTakesItsPlaceBehindWhatIsThere() async {
    let end = await scheduler.held()
    note("delayed", after: .seconds(1))
    scheduler.schedule { [journal] in journal.write("before") }
    clock.advance(by: .seconds(1))
    scheduler.schedule { [journal] in journal.write("after") }
    end.open()
    await journal.reaches(3)
    #expect(journal.entries == ["before", "delayed", "after"])
  }

  @Test func itRunsOnTheSchedulerAndNotOnTheThreadOfTheClock() async {
    let end = await scheduler.held()
    let scheduler = scheduler
    let seen = Journal<Bool>()
    scheduler.schedule(after: .seconds(1)) { seen.write(scheduler.isCurrent) }
    clock.advance(by: .seconds(1))
    #expect(seen.entries.isEmpty)
    end.open()
    await seen.reaches(1)
    #expect(seen.entries == [true])
  }

  @Test func noDelayAndANegativeOneAreOverAtOnceAndNeverInline() async {
    let end = await scheduler.held()
    scheduler.schedule { [journal] in journal.write("first") }
    note("zero", after: .zero)
    note("negative", after: .seconds(-5))
    scheduler.schedule { [journal] in journal.write("last") }
    #expect(journal.entries.isEmpty)
    end.open()
    await journal.reaches(4)
    #expect(journal.entries == ["first", "zero", "negative", "last"])
  }

  @Test func aCancelledOneNeverRunsAndTheOthersDo() async {
    note("a", after: .seconds(1))
    let second = note("b", after: .seconds(1))
    note("c", after: .seconds(1))
    let fourth = note("d", after: .seconds(2))
    second.cancel()
    second.cancel()
    fourth.cancel()
    clock.advance(by: .seconds(5))
    await scheduler.drained()
    #expect(journal.entries == ["a", "c"])
  }

  @Test func theOneThatTheTimerWaitedForMayBeCancelled() async {
    let first = note("first", after: .seconds(1))
    note("second", after: .seconds(2))
    first.cancel()
    #expect(clock.sleepers == 1)
    clock.advance(by: .seconds(2))
    await scheduler.drained()
    #expect(journal.entries == ["second"])
    #expect(clock.sleepers == 0)
  }

  @Test func whenAllAreCancelledNothingWaitsForAnyTime() {
    let events = (1...5).map { note("\($0)", after: .seconds($0)) }
    for event in events { event.cancel() }
    #expect(clock.sleepers == 0)
  }

  @Test func oneThatIsDueAndHasNotBegunCanBeCancelled() async {
    let end = await scheduler.held()
    let event = note("due", after: .seconds(1))
    let atOnce = note("at once", after: .zero)
    clock.advance(by: .seconds(1))
    event.cancel()
    atOnce.cancel()
    end.open()
    await scheduler.drained()
    #expect(journal.entries.isEmpty)
  }

  @Test func cancelledOnTheSchedulerItIsInTimeOrTooLate() async {
    for _ in 0..<200 {
      let journal = Journal<String>()
      let scheduler = scheduler
      let event = scheduler.schedule(after: .seconds(1)) { journal.write("event") }
      scheduler.schedule {
        event.cancel()
        journal.write("cancelled")
      }
      await onThreads(2) { [clock] thread in if thread == 0 { clock.advance(by: .seconds(1)) } }
      await scheduler.drained()
      #expect([["cancelled"], ["event", "cancelled"]].contains(journal.entries))
    }
  }

  @Test func cancellingOneThatHasRunDoesNothing() async {
    let event = note("event", after: .seconds(1))
    clock.advance(by: .seconds(1))
    await scheduler.drained()
    event.cancel()
    #expect(journal.entries == ["event"])
  }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func aShutdownDropsThem(_ mode: SerialScheduler.ShutdownMode) async {
    let live = LiveCount()
    let token = LiveCount.Token(live)
    scheduler.schedule(after: .seconds(1)) { [journal, token] in withExtendedLifetime(token) { journal.write("late") } }
    note("later", after: .seconds(2))
    scheduler.shutDown(mode)
    #expect(clock.sleepers == 0)
    note("refused", after: .seconds(1))
    note("refused at once", after: .zero)
    clock.advance(by: .seconds(5))
    await scheduler.drained()
    #expect(journal.entries.isEmpty)
    withExtendedLifetime(token) { #expect(live.alive == 1) }
  }

  @Test func oneThatIsDueAtTheShutdownIsDrained() async {
    let end = await scheduler.held()
    note("due", after: .seconds(1))
    note("not due", after: .seconds(2))
    clock.advance(by: .seconds(1))
    scheduler.shutDown(.drain)
    clock.advance(by: .seconds(1))
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["due"])
  }

  @Test func aVeryLongDelayIsPossible() async throws {
    let real = SerialScheduler(name: "real")
    let events = [Duration.seconds(Int64.max), .seconds(1_000_000_000_000)].map { delay in
      real.schedule(after: delay) { [journal] in journal.write("never") }
    }
    try await real.run {}
    for event in events { event.cancel() }
    #expect(journal.entries.isEmpty)
  }

  @Test func cancellingReleasesTheEventAtOnce() {
    let live = LiveCount()
    let real = SerialScheduler(name: "real")
    for scheduler in [real, scheduler] {
      // Some in front of others, which stay.
      let events = (0..<100).map { index in
        scheduler.schedule(after: .seconds(3600 - index)) { [token = LiveCount.Token(live)] in
          withExtendedLifetime(token) {}
        }
      }
      for (index, event) in events.reversed().enumerated() {
        event.cancel()
        #expect(live.alive == 99 - index)
      }
    }
    #expect(clock.sleepers == 0)
  }

  @Test func withoutAManualClockTheRealOneCounts() async {
    let real = SerialScheduler(name: "real")
    let start = ContinuousClock.now
    let done = Gate()
    real.schedule(after: .milliseconds(30)) { done.open() }
    await done.opened()
    #expect(ContinuousClock.now - start >= .milliseconds(30))
  }

  @Test func manyFromManyThreadsAllComeInOrderOfTime() async {
    let scheduler = scheduler
    let seen = Journal<Int>()
    await onThreads(4) { thread in
      for index in 0..<500 {
        let seconds = (index * 7 + thread * 13) % 100 + 1
        scheduler.schedule(after: .seconds(seconds)) { seen.write(seconds) }
      }
    }
    clock.advance(by: .seconds(100))
    await seen.reaches(2000)
    #expect(seen.entries == seen.entries.sorted())
  }
}
