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
    #expect(scheduler.statistics.eventsQueued == 2)
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["a999", "b999"])
    #expect(scheduler.statistics.eventsCoalesced == 1998)
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

  @Test func oneThatHasBegunIsNotTouched() async {
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
    for _ in 0..<10 {
      scheduler.schedule(coalescing: "key") { [token = LiveCount.Token(live)] in withExtendedLifetime(token) {} }
    }
    #expect(live.alive == 1)
    end.open()
    await live.none()
  }

  @Test(arguments: [EventCapacity.Policy.fail, .suspend])
  func whenFullTheLatestTakesThePlaceOfTheOneBefore(_ policy: EventCapacity.Policy) async {
    let small = SerialScheduler(name: "small", capacity: EventCapacity(1, whenFull: policy))
    let end = await small.held()
    for text in ["old", "new"] {
      let isAccepted = small.schedule(coalescing: "reload") { journal.write(text) }
      #expect(isAccepted)
    }
    await small.drained(afterOpening: end)
    #expect(journal.entries == ["new"])
  }

  @Test func afterAShutdownTheOneBeforeStillRuns() async {
    let end = await scheduler.held()
    #expect(note("old"))
    scheduler.shutDown(.drain)
    #expect(!note("new"))
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["old"])
  }

  @Test func underAStormFromFourThreadsTheLastOfEachThreadIsNotLost() async {
    let last = Locked([Int](repeating: -1, count: 4))
    let disorder = Locked(0)
    await onThreads(4) { thread in
      for index in 0..<5000 {
        scheduler.schedule(coalescing: "thread \(thread)") {
          if last.withLock({ $0[thread] }) >= index { disorder.withLock { $0 += 1 } }
          last.withLock { $0[thread] = index }
        }
      }
    }
    await scheduler.drained()
    #expect(last.withLock { $0 } == [4999, 4999, 4999, 4999])
    #expect(disorder.withLock { $0 } == 0)
    let statistics = scheduler.statistics
    #expect(statistics.eventsRun + statistics.eventsCoalesced == 20_000 && statistics.eventsQueued == 0)
  }
}
