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

  /// What Foundation lets only synchronous code do.
  private func add(_ operations: [Operation]) { scheduler.queue.addOperations(operations, waitUntilFinished: false) }

  @Test func operationsOfEveryKindKeepTheirPlaceAmongEvents() async throws {
    let end = await scheduler.held()
    let queue = scheduler.queue
    note("1")
    queue.addOperation(plain("operation", journal) as Operation)
    note("2")
    queue.addOperation(NoteOperation("asynchronous", journal))
    note("3")
    queue.addOperation { journal.write("block") }
    note("4")
    add([plain("first of two", journal), NoteOperation("second of two", journal)])
    note("5")
    queue.addOperations([NoteOperation("first of three", journal), plain("second", journal), plain("third", journal)])
    note("6")
    queue.addBarrierBlock { journal.write("barrier") }
    note("7")
    let group = GroupOperation([NoteOperation("member", journal), plain("other member", journal)])
    group.maxConcurrentOperationCount = 1
    queue.addOperation(group)
    note("8")
    queue.addOperation(NoteOperation("exclusive", journal).exclusive("key", in: ExclusivityDomain()))
    note("9")
    queue.addGraph(endingIn: NoteOperation("graph", journal))
    note("10")
    let awaited = immediately { try await queue.run(NoteOperation("awaited", journal)) }
    note("11")
    let run = immediately { try await scheduler.run { journal.write("run") } }
    note("12")
    end.open()
    for task in [awaited, run] { try await task.value }
    await journal.reaches(27)
    #expect(
      journal.entries == [
        "1", "operation", "2", "asynchronous", "3", "block", "4", "first of two", "second of two", "5",
        "first of three", "second", "third", "6", "barrier", "7", "member", "other member", "8",
        "exclusive", "9", "graph", "10", "awaited", "11", "run", "12",
      ]
    )
  }

  @Test func jobsOfActorsKeepTheirPlaceAmongEventsAndOperations() async {
    let end = await scheduler.held()
    let notes = Notes(on: scheduler, journal)
    for index in 0..<50 {
      note("event \(index)")
      immediately { await notes.note("method \(index)") }
      scheduler.queue.addOperation { journal.write("operation \(index)") }
    }
    end.open()
    await journal.reaches(150)
    let expected = (0..<50).flatMap { index in ["event", "method", "operation"].map { "\($0) \(index)" } }
    #expect(journal.entries == expected)
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

  @Test func anAsynchronousOperationKeepsItsPlaceUntilItHasFinished() async {
    let operation = HeldOperation()
    let plain = ClassicOperation()
    scheduler.queue.addOperation(operation)
    note("between")
    scheduler.queue.addOperation(plain)
    note("last")
    await operation.begun.opened()
    #expect(journal.entries.isEmpty)
    operation.gate.open()
    await plain.begun.opened()
    #expect(journal.entries == ["between"])
    plain.gate.open()
    await journal.reaches(2)
    #expect(journal.entries == ["between", "last"])
  }

  @Test func aLongBurstDoesNotFallBehindTheOperationsThatFollowIt() async {
    let end = await scheduler.held()
    for round in 0..<4 {
      for index in 0..<150 {
        // A round takes 15 milliseconds, which is longer than a drain keeps its thread.
        scheduler.schedule {
          work(for: .microseconds(100))
          journal.write("event \(round).\(index)")
        }
      }
      scheduler.queue.addOperation { journal.write("operation \(round)") }
    }
    end.open()
    await journal.reaches(604)
    let expected = (0..<4).map { round in (0..<150).map { "event \(round).\($0)" } + ["operation \(round)"] }
    #expect(journal.entries == Array(expected.joined()))
  }

  @Test func whatIsAddedWhileABurstIsRunComesAfterIt() async {
    let end = await scheduler.held()
    for index in 0..<300 {
      scheduler.schedule {
        work(for: .microseconds(100))
        journal.write("\(index)")
        if index > 0 { return }
        scheduler.queue.addOperation { journal.write("operation") }
        note("after")
      }
    }
    end.open()
    await journal.reaches(302)
    #expect(journal.entries == (0..<300).map(String.init) + ["operation", "after"])
  }

  @Test func dependentOperation_runsWhenReadyAndDelaysNoEvent() async {
    let other = HeldOperation()
    let dependent = NoteOperation("dependent", journal)
    other ==> dependent
    OperationQueue().addOperation(other)
    scheduler.queue.addOperation(dependent)
    note("event")
    await journal.reaches(1)
    #expect(journal.entries == ["event"])
    other.gate.open()
    await journal.reaches(2)
    #expect(journal.entries == ["event", "dependent"])
  }

  @Test func whoWaitsForItsOperationsHasTheEventsBeforeThemRun() async throws {
    for index in 0..<10 { note("\(index)") }
    let seen = try await onThread {
      scheduler.queue.addOperations([plain("a", journal), plain("b", journal)], waitUntilFinished: true)
      return journal.entries
    }.get()
    #expect(seen == (0..<10).map(String.init) + ["a", "b"])
  }

  @Test func actorThatNamesTheExecutorItself_isOnTheScheduler() async {
    #expect(await Tenant(on: scheduler).isOnScheduler)
  }

  // MARK: Four threads

  /// What came from each thread. It needs no lock, because only the scheduler uses it.
  private final class Tally: @unchecked Sendable {
    private(set) var (count, disorder, overlaps) = (0, 0, 0)
    private var last: [Int: Int] = [:]
    private var isBusy = false

    func note(_ index: Int, from thread: Int) {
      if isBusy { overlaps += 1 }
      isBusy = true
      if last[thread, default: -1] >= index { disorder += 1 }
      last[thread] = index
      count += 1
      isBusy = false
    }
  }

  @Test func eventsRunInTheOrderInWhichTheyWereScheduled() async throws {
    let tally = Tally()
    await onThreads(4) { thread in
      for index in 0..<25_000 { scheduler.schedule { tally.note(index, from: thread) } }
    }
    let result = try await scheduler.run { (tally.count, tally.disorder, tally.overlaps) }
    #expect(result == (100_000, 0, 0))
  }

  // MARK: Coalescing

  @discardableResult
  private func coalesce(_ text: String, _ key: String = "reload") -> Bool {
    scheduler.schedule(coalescing: key) { journal.write(text) }
  }

  @Test func onlyTheLatestOfEachKeyRuns() async {
    let end = await scheduler.held()
    for index in 0..<1000 { for key in ["a", "b"] { #expect(coalesce("\(key)\(index)", key)) } }
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
      coalesce("own.\(round)", "key")
    }
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["object 0.1", "object 1.1", "object 2.1", "shelf.1", "own.1"])
  }

  @Test func itComesAfterEverythingThatWasScheduledBefore() async {
    let end = await scheduler.held()
    coalesce("old")
    scheduler.schedule { journal.write("event") }
    scheduler.queue.addOperation { journal.write("operation") }
    coalesce("new")
    scheduler.schedule { journal.write("last") }
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["event", "operation", "new", "last"])
  }

  @Test func eventThatHasBegun_isNotReplaced() async {
    scheduler.schedule(coalescing: "reload") {
      coalesce("second")
      coalesce("third")
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

/// An actor that does not conform to `ScheduledActor`.
private actor Tenant {
  private nonisolated let scheduler: SerialScheduler
  nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe scheduler.asUnownedSerialExecutor() }
  var isOnScheduler: Bool { scheduler.isCurrent }

  init(on scheduler: SerialScheduler) { self.scheduler = scheduler }
}
