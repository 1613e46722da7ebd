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
  private func note(_ text: String, _ key: String, on scheduler: SerialScheduler? = nil) -> Bool {
    (scheduler ?? self.scheduler).schedule(coalescing: key) { [journal] in journal.write(text) }
  }

  @Test func onlyTheLatestRuns() async {
    let end = await scheduler.held()
    for index in 0..<1000 { #expect(note("\(index)", "reload")) }
    #expect(scheduler.statistics.eventsQueued == 1)
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["999"])
    #expect(scheduler.statistics.eventsCoalesced == 999)
  }

  @Test func eachKeyHasItsOwn() async {
    let end = await scheduler.held()
    for index in 0..<3 { for key in ["a", "b"] { note("\(key)\(index)", key) } }
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["a2", "b2"])
  }

  @Test func itComesAfterEverythingThatWasScheduledBefore() async {
    let journal = journal
    let end = await scheduler.held()
    note("old", "reload")
    scheduler.schedule { journal.write("event") }
    scheduler.queue.addOperation { journal.write("operation") }
    note("new", "reload")
    scheduler.schedule { journal.write("last") }
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["event", "operation", "new", "last"])
  }

  @Test func oneThatHasBegunIsNotTouched() async {
    let (scheduler, journal) = (scheduler, journal)
    scheduler.schedule(coalescing: "reload") {
      scheduler.schedule(coalescing: "reload") { journal.write("second") }
      scheduler.schedule(coalescing: "reload") { journal.write("third") }
      journal.write("first")
    }
    await journal.reaches(2)
    await scheduler.drained()
    #expect(journal.entries == ["first", "third"])
  }

  @Test func oneThatHasRunIsForgotten() async {
    note("first", "reload")
    await scheduler.drained()
    note("second", "reload")
    await scheduler.drained()
    #expect(journal.entries == ["first", "second"])
    #expect(scheduler.statistics.eventsDropped == 0)
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

  @Test func eachObjectHasItsOwnKeys() async {
    let journal = journal
    let end = await scheduler.held()
    let objects = (0..<3).map { SchedulableObject("object \($0)", on: scheduler) }
    let shelf = Shelf(on: scheduler)
    for round in 0..<2 {
      for object in objects { object.schedule(coalescing: "key") { journal.write("\($0).\(round)") } }
      shelf.schedule(coalescing: "key") { _ in journal.write("shelf.\(round)") }
      note("own.\(round)", "key")
    }
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["object 0.1", "object 1.1", "object 2.1", "shelf.1", "own.1"])
  }

  @Test func whenFullTheLatestTakesThePlaceOfTheOneBefore() async {
    let small = SerialScheduler(name: "small", capacity: EventCapacity(1, whenFull: .fail))
    let end = await small.held()
    #expect(note("old", "reload", on: small))
    #expect(note("new", "reload", on: small))
    end.open()
    await small.drained()
    #expect(journal.entries == ["new"])
  }

  @Test func whenTheLatestIsRefusedTheOneBeforeStillRuns() async throws {
    let journal = journal
    let small = SerialScheduler(name: "small", capacity: EventCapacity(1, whenFull: .suspend))
    let end = await small.held()
    #expect(note("old", "reload", on: small))
    let sender = immediately { try await small.send { journal.write("sent") } }
    let isAccepted = note("new", "reload", on: small)
    end.open()
    try await sender.value
    await small.drained()
    // One of the two has to reload.
    #expect(Set(journal.entries) == ["sent", isAccepted ? "new" : "old"])
  }

  @Test func afterAShutdownTheOneBeforeStillRuns() async {
    let end = await scheduler.held()
    #expect(note("old", "reload"))
    scheduler.shutDown(.drain)
    #expect(!note("new", "reload"))
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["old"])
  }

  @Test func underAStormFromFourThreadsTheLastOfEachThreadIsNotLost() async {
    let scheduler = scheduler
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
