import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Only the latest of the events under one key that have not yet run.
@Suite(.timeLimit(.minutes(5)))
struct CoalescingTests {
  private let scheduler = SerialScheduler(name: "screen")
  private let journal = Journal<String>()

  @discardableResult
  private func note(_ text: String, _ key: String = "reload") -> Bool {
    scheduler.schedule(coalescing: key) { journal.write(text) }
  }

  @Test func onlyTheLatestOfEachKeyRuns() async {
    let end = await scheduler.held()
    for index in 0..<1000 { for key in ["a", "b"] { #expect(note("\(key)\(index)", key)) } }
    #expect(scheduler.statistics.eventsQueued == 2 && scheduler.statistics.eventsCoalesced == 1998)
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["a999", "b999"])
  }

  @Test func eachObjectHasItsOwnKeys() async {
    let end = await scheduler.held()
    let objects = (0..<3).map { SchedulableObject("object \($0)", on: scheduler) }
    let shelf = Shelf(on: scheduler)
    for round in 0..<2 {
      for object in objects { object.schedule(coalescing: "key") { journal.write("\($0).\(round)") } }
      shelf.schedule(coalescing: "key") { _ in journal.write("shelf.\(round)") }
      note("own.\(round)", "key")
    }
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["object 0.1", "object 1.1", "object 2.1", "shelf.1", "own.1"])
  }

  @Test func itComesAfterEverythingThatWasScheduledBefore() async {
    let end = await scheduler.held()
    note("old")
    scheduler.schedule { journal.write("event") }
    scheduler.queue.addOperation { journal.write("operation") }
    note("new")
    scheduler.schedule { journal.write("last") }
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["event", "operation", "new", "last"])
  }

  @Test func eventThatHasBegun_isNotReplaced() async {
    scheduler.schedule(coalescing: "reload") {
      note("second")
      note("third")
      journal.write("first")
    }
    await journal.reaches(2)
    await scheduler.drained()
    #expect(journal.entries == ["first", "third"])
  }

  @Test func whatIsSupersededIsReleased() async {
    let live = LiveCount()
    let end = await scheduler.held()
    for _ in 0..<10 { scheduler.schedule(coalescing: "key", live.counted()) }
    #expect(live.alive == 1)
    end.open()
    await live.none()
  }
}
