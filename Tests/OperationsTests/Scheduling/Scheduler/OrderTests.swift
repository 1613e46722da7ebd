import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Events, jobs and operations share one wait queue. Coalesced events are in it once for each key.
@Suite(.timeLimit(.minutes(5)))
struct OrderTests {
  private let scheduler = SerialScheduler(name: "line")
  private let journal = Journal<String>()

  private func note(_ text: String) { scheduler.schedule { journal.write(text) } }

  @Test func operationsOfEveryKindKeepTheirPlaceAmongEvents() async {
    let end = await scheduler.held()
    let (queue, notes) = (scheduler.queue, Notes(on: scheduler, journal))
    let group = GroupOperation([NoteOperation("member", journal), plain("other member", journal)])
    group.maxConcurrentOperationCount = 1
    let exclusive = NoteOperation("exclusive", journal).exclusive("key", in: ExclusivityDomain())
    let two: [Operation] = [plain("one", journal), NoteOperation("two", journal)]
    let three: [Operation] = [NoteOperation("first", journal), plain("second", journal), plain("third", journal)]
    let additions: [([String], () -> Void)] = [
      (["operation"], { queue.addOperation(plain("operation", journal) as Operation) }),
      (["asynchronous"], { queue.addOperation(NoteOperation("asynchronous", journal)) }),
      (["block"], { queue.addOperation { journal.write("block") } }),
      (["one", "two"], { queue.addOperations(two, waitUntilFinished: false) }),
      (["first", "second", "third"], { queue.addOperations(three) }),
      (["barrier"], { queue.addBarrierBlock { journal.write("barrier") } }),
      (["member", "other member"], { queue.addOperation(group) }),
      (["exclusive"], { queue.addOperation(exclusive) }),
      (["graph"], { queue.addGraph(endingIn: NoteOperation("graph", journal)) }),
      (["awaited"], { immediately { try await queue.run(NoteOperation("awaited", journal)) } }),
      (["event"], { notes.schedule { $0.note("event") } }),
      (["job"], { immediately { await notes.note("job") } }),
      (["run"], { immediately { try await scheduler.run { journal.write("run") } } }),
    ]
    for (names, add) in additions {
      note("before \(names[0])")
      add()
    }
    note("last")
    end.open()
    let expected: [String] = additions.flatMap { names, _ in ["before \(names[0])"] + names } + ["last"]
    #expect(await journal.all(expected.count) == expected)
  }

  @Test func tasksOfAnyPriority_keepTheirOrderAndOvertakeNoEvent() async {
    let priorities: [TaskPriority] = [.background, .high, .low, .userInitiated, .utility, .medium]
    let end = await scheduler.held()
    for index in 0..<50 {
      note("event \(index)")
      Task(executorPreference: scheduler, priority: priorities[index % 6]) { journal.write("task \(index)") }
    }
    end.open()
    await journal.reaches(100)
    let entries = journal.entries
    #expect(entries.filter { $0.hasPrefix("task") } == (0..<50).map { "task \($0)" })
    // The runtime may run a task in two jobs, so its body follows all earlier events and perhaps some later ones.
    for index in 0..<50 {
      #expect(entries.firstIndex(of: "event \(index)")! < entries.firstIndex(of: "task \(index)")!)
    }
  }

  @Test func dependentOperation_runsWhenReadyAndDelaysNoEvent() async {
    let other = HeldOperation()
    let dependent = NoteOperation("dependent", journal)
    other ==> dependent
    OperationQueue().addOperation(other)
    scheduler.queue.addOperation(dependent)
    note("event")
    #expect(await journal.all(1) == ["event"])
    other.gate.open()
    #expect(await journal.all(2) == ["event", "dependent"])
  }

  @Test func whoWaitsForItsOperationsHasTheEventsBeforeThemRun() async throws {
    for index in 0..<10 { note("\(index)") }
    let seen = try await onThread {
      scheduler.queue.addOperations([plain("a", journal), plain("b", journal)], waitUntilFinished: true)
      return journal.entries
    }.get()
    #expect(seen == (0..<10).map(String.init) + ["a", "b"])
  }

  // MARK: Coalescing

  private func coalesce(_ text: String) { scheduler.schedule(coalescing: "key") { journal.write(text) } }

  @Test func onlyTheLatestOfEachKeyRuns_andTheOthersAreReleased() async {
    let (live, end) = (LiveCount(), await scheduler.held())
    for index in 0..<1000 {
      for key in ["a", "b"] {
        let isAccepted = scheduler.schedule(coalescing: key, live.counted { journal.write("\(key)\(index)") })
        #expect(isAccepted)
      }
    }
    #expect(live.alive == 2)
    #expect(scheduler.statistics.eventsQueued == 2 && scheduler.statistics.eventsCoalesced == 1998)
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["a999", "b999"])
  }

  @Test func eachObjectHasItsOwnKeys() async {
    let end = await scheduler.held()
    let shelves = (0..<3).map { _ in Shelf(on: scheduler) }
    for round in 0..<2 {
      for (index, shelf) in shelves.enumerated() {
        shelf.schedule(coalescing: "key") { _ in journal.write("shelf \(index).\(round)") }
      }
      coalesce("own.\(round)")
    }
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["shelf 0.1", "shelf 1.1", "shelf 2.1", "own.1"])
  }

  @Test func aCoalescedEventTakesThePlaceOfTheOneItReplaces() async {
    let end = await scheduler.held()
    coalesce("old")
    note("event")
    scheduler.queue.addOperation { journal.write("operation") }
    coalesce("new")
    note("last")
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["new", "event", "operation", "last"])
  }

  @Test func coalescedEventRuns_whileEventsContinueThemselves() async {
    @Sendable func replace() {
      scheduler.schedule(replace)
      coalesce("shown")
    }
    replace()
    await journal.reaches(100)
    scheduler.shutDown(.discard)
  }
}
