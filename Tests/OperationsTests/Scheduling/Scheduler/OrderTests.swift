import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Events, jobs and operations share one line.
@Suite(.timeLimit(.minutes(5)))
struct OrderTests {
  private let scheduler = SerialScheduler(name: "line")
  private let journal = Journal<String>()

  private func note(_ text: String) { scheduler.schedule { [journal] in journal.write(text) } }

  /// What Foundation lets only synchronous code do.
  private func add(_ operations: [Operation]) { scheduler.queue.addOperations(operations, waitUntilFinished: false) }

  @Test func eventsRunInTheOrderInWhichTheyWereScheduled() async {
    for index in 0..<1000 { note("\(index)") }
    await journal.reaches(1000)
    #expect(journal.entries == (0..<1000).map(String.init))
  }

  @Test func operationsOfEveryKindKeepTheirPlaceAmongEvents() async {
    let end = await scheduler.held()
    let queue = scheduler.queue
    note("1")
    queue.addOperation(plain("operation", journal) as Operation)
    note("2")
    queue.addOperation(NoteOperation("asynchronous", journal))
    note("3")
    queue.addOperation { [journal] in journal.write("block") }
    note("4")
    add([plain("first of two", journal), NoteOperation("second of two", journal)])
    note("5")
    queue.addOperations([NoteOperation("first of three", journal), plain("second", journal), plain("third", journal)])
    note("6")
    queue.addBarrierBlock { [journal] in journal.write("barrier") }
    note("7")
    let member = NoteOperation("member", journal)
    let group = GroupOperation([member, plain("other member", journal)])
    group.maxConcurrentOperationCount = 1
    queue.addOperation(group)
    note("8")
    end.open()
    await journal.reaches(19)
    #expect(
      journal.entries == [
        "1", "operation", "2", "asynchronous", "3", "block", "4", "first of two", "second of two", "5",
        "first of three",
        "second", "third", "6", "barrier", "7", "member", "other member", "8",
      ]
    )
  }

  @Test func whatIsRunAndAwaitedKeepsItsPlace() async throws {
    let end = await scheduler.held()
    let (scheduler, journal) = (scheduler, journal)
    note("1")
    let first = immediately { try await scheduler.queue.run(NoteOperation("operation", journal)) }
    note("2")
    let second = immediately { try await scheduler.run { journal.write("run") } }
    note("3")
    let third = immediately {
      try await scheduler.queue.run(ResultOperation<Void> { journal.write("value") })
    }
    note("4")
    end.open()
    try await first.value
    try await second.value
    try await third.value
    await journal.reaches(7)
    #expect(journal.entries == ["1", "operation", "2", "run", "3", "value", "4"])
  }

  @Test func jobsOfActorsKeepTheirPlaceAmongEventsAndOperations() async {
    let end = await scheduler.held()
    let notes = Notes(on: scheduler, journal)
    let journal = journal
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

  @Test func tasksThatPreferTheSchedulerKeepTheirOrderAndOvertakeNobody() async {
    let end = await scheduler.held()
    let journal = journal
    for index in 0..<50 {
      note("event \(index)")
      Task(executorPreference: scheduler) { journal.write("task \(index)") }
    }
    end.open()
    await journal.reaches(100)
    let entries = journal.entries
    #expect(entries.filter { $0.hasPrefix("task") } == (0..<50).map { "task \($0)" })
    #expect(entries.filter { $0.hasPrefix("event") } == (0..<50).map { "event \($0)" })
    // The runtime may run a task in two jobs: its body comes behind what was there, perhaps also behind what came
    // later.
    for index in 0..<50 {
      #expect(entries.firstIndex(of: "event \(index)")! < entries.firstIndex(of: "task \(index)")!)
    }
  }

  @Test func jobsAreNotReorderedByTheirPriority() async {
    let end = await scheduler.held()
    let journal = journal
    let priorities: [TaskPriority] = [.background, .high, .low, .userInitiated, .utility, .medium]
    for index in 0..<60 {
      Task(executorPreference: scheduler, priority: priorities[index % priorities.count]) { journal.write("\(index)") }
    }
    end.open()
    await journal.reaches(60)
    #expect(journal.entries == (0..<60).map(String.init))
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
    let journal = journal
    let scheduler = scheduler
    let end = await scheduler.held()
    var expected: [String] = []
    for round in 0..<4 {
      for index in 0..<150 {
        // 15 milliseconds altogether, and what is due to come is never idle.
        scheduler.schedule {
          work(for: .microseconds(100))
          journal.write("event \(round).\(index)")
        }
        expected.append("event \(round).\(index)")
      }
      switch round {
      case 0: scheduler.queue.addOperation { journal.write("operation \(round)") }
      case 1: scheduler.queue.addBarrierBlock { journal.write("operation \(round)") }
      case 2: add([plain("operation \(round)", journal)])
      default: scheduler.queue.addOperation(NoteOperation("operation \(round)", journal))
      }
      expected.append("operation \(round)")
    }
    end.open()
    await journal.reaches(expected.count)
    #expect(journal.entries == expected)
  }

  @Test func whatIsAddedWhileABurstIsRunComesAfterIt() async {
    let journal = journal
    let scheduler = scheduler
    for index in 0..<300 {
      scheduler.schedule {
        work(for: .microseconds(100))
        journal.write("\(index)")
        if index % 100 == 0 {
          scheduler.queue.addOperation { journal.write("operation \(index)") }
          scheduler.schedule { journal.write("after \(index)") }
        }
      }
    }
    await journal.reaches(306)
    let entries = journal.entries
    #expect(entries.filter { Int($0) != nil } == (0..<300).map(String.init))
    for index in [0, 100, 200] {
      let operation = entries.firstIndex(of: "operation \(index)")!
      let event = entries.firstIndex(of: "after \(index)")!
      #expect(entries.firstIndex(of: "\(index)")! < operation && operation < event)
    }
  }

  @Test func aDependentOperationRunsWhenItIsReadyAndHoldsNobodyUp() async {
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

  @Test func graphsAndExclusiveOperationsKeepTheirPlace() async {
    let end = await scheduler.held()
    let domain = ExclusivityDomain()
    note("1")
    scheduler.queue.addOperation(NoteOperation("exclusive", journal).exclusive("key", in: domain))
    note("2")
    scheduler.queue.addGraph(endingIn: NoteOperation("graph", journal))
    note("3")
    end.open()
    await journal.reaches(5)
    #expect(journal.entries == ["1", "exclusive", "2", "graph", "3"])
  }

  @Test func whoWaitsForItsOperationsHasTheEventsBeforeThemRun() async throws {
    let (scheduler, journal) = (scheduler, journal)
    for index in 0..<10 { note("\(index)") }
    let seen = try await onThread {
      scheduler.queue.addOperations([plain("a", journal), plain("b", journal)], waitUntilFinished: true)
      return journal.entries
    }.get()
    #expect(seen == (0..<10).map(String.init) + ["a", "b"])
  }

  @Test func anActorMayNameTheExecutorItself() async throws {
    let scheduler = scheduler
    let counter = Counter(on: scheduler)
    #expect(await counter.perform { scheduler.isCurrent })
    let end = await scheduler.held()
    let journal = journal
    note("1")
    let job = immediately { await counter.perform { journal.write("job") } }
    note("2")
    end.open()
    try await job.value
    await journal.reaches(3)
    #expect(journal.entries == ["1", "job", "2"])
  }
}

/// An actor that is no ScheduledActor.
private actor Counter {
  private nonisolated let scheduler: SerialScheduler

  init(on scheduler: SerialScheduler) { self.scheduler = scheduler }

  nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe scheduler.asUnownedSerialExecutor() }

  func perform<T: Sendable>(_ body: @Sendable () -> T) -> T { body() }
}
