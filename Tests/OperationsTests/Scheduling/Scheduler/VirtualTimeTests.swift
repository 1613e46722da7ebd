import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct VirtualTimeTests {
  private let clock = ManualClock()
  private let scheduler: SerialScheduler
  private let journal = Journal<String>()

  init() { scheduler = SerialScheduler(name: "later", clock: clock) }

  private func note(_ text: String) { journal.write("\(text) at \(clock.now.offset.components.seconds)") }

  @discardableResult
  private func note(_ text: String, after delay: Duration) -> ScheduledEvent {
    scheduler.schedule(after: delay) { note(text) }
  }

  @Test func eventsRunInTheOrderOfTheirTimesAndOfScheduling() async {
    for (text, seconds) in [("c", 3), ("a", 1), ("d", 3), ("b", 2), ("now", 0)] { note(text, after: .seconds(seconds)) }
    await clock.advance(by: .seconds(3), draining: scheduler)
    #expect(journal.entries == ["now at 0", "a at 1", "b at 2", "c at 3", "d at 3"])
    #expect(clock.sleepers == 0)
    note("late", after: .seconds(10))
    clock.advance(by: .seconds(4))
    note("early", after: .seconds(2))
    await clock.advance(by: .seconds(6), draining: scheduler)
    #expect(journal.entries.suffix(2) == ["early at 9", "late at 13"])
  }

  /// The event of one scheduler has begun when the other one, which started it, has nothing left to run.
  @Test func theClockWaitsForAnEventThatHasBegunOnAnotherScheduler() async {
    let other = SerialScheduler(name: "other", clock: clock)
    scheduler.schedule(after: .seconds(1)) {
      let begun = Gate()
      other.schedule {
        begun.open()
        // Every opportunity to move the clock.
        for _ in 0..<100 { OperationQueue().addOperations([BlockOperation {}], waitUntilFinished: true) }
        note("event")
      }
      begun.pass()
    }
    await clock.advance(by: .seconds(5), draining: other, scheduler)
    #expect(journal.entries == ["event at 1"])
  }

  // MARK: Cancelling and shutting down

  @Test func dueEventThatHasNotBegun_canBeCancelledAndIsThenNeitherQueuedNorDropped() async {
    let end = await scheduler.held()
    let events = [note("due", after: .seconds(1)), note("at once", after: .zero)]
    clock.advance(by: .seconds(1))
    #expect(scheduler.statistics.eventsQueued == 2)
    for event in events { event.cancel() }
    #expect(scheduler.statistics.eventsQueued == 0 && scheduler.statistics.eventsDropped == 0)
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries.isEmpty && scheduler.statistics.eventsRun == 1)
  }

  @Test func cancellingReleasesTheEventAtOnce() {
    let live = LiveCount()
    for scheduler in [SerialScheduler(name: "real"), scheduler] {
      // Each cancelled event is ahead of those that stay.
      let events = (0..<100).map { scheduler.schedule(after: .seconds(3600 - $0), live.counted()) }
      for (index, event) in events.reversed().enumerated() {
        event.cancel()
        #expect(live.alive == 99 - index)
      }
    }
    #expect(clock.sleepers == 0)
  }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func shutdownDropsWhatIsNotDue_andCountsWhatItDrops(mode: SerialScheduler.ShutdownMode) async {
    let live = LiveCount()
    let end = await scheduler.held()
    note("due", after: .seconds(1))
    scheduler.schedule(after: .seconds(2), live.counted { note("not due") })
    clock.advance(by: .seconds(1))
    scheduler.schedule { note("event") }
    scheduler.schedule(coalescing: "key") { note("coalesced") }
    scheduler.shutDown(mode)
    await live.none()
    note("refused", after: .seconds(1))
    note("refused at once", after: .zero)
    #expect(scheduler.statistics.eventsDropped == (mode == .drain ? 3 : 6))
    #expect(clock.sleepers == 0)
    clock.advance(by: .seconds(1))
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == (mode == .drain ? ["due at 2", "event at 2", "coalesced at 2"] : []))
    let (isDraining, statistics) = (mode == .drain, scheduler.statistics)
    #expect(statistics.eventsQueued == 0 && statistics.eventsRun == (isDraining ? 4 : 1))
    #expect(statistics.eventsDropped == (isDraining ? 3 : 6))
  }
}
