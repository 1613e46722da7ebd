import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Events, jobs and operations share one line.
@Suite(.timeLimit(.minutes(5)))
struct OrderTests {
  private let scheduler = SerialScheduler(name: "line")
  private let journal = Journal<String>()

  private func note(_ text: String) { scheduler.schedule { journal.write(text) } }

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
    end.open()
    await journal.reaches(23)
    #expect(
      journal.entries == [
        "1", "operation", "2", "asynchronous", "3", "block", "4", "first of two", "second of two", "5",
        "first of three", "second", "third", "6", "barrier", "7", "member", "other member", "8",
        "exclusive", "9", "graph", "10",
      ]
    )
  }

  @Test func whatIsRunAndAwaitedKeepsItsPlace() async throws {
    let end = await scheduler.held()
    note("1")
    let first = immediately { try await scheduler.queue.run(NoteOperation("operation", journal)) }
    note("2")
    let second = immediately { try await scheduler.run { journal.write("run") } }
    note("3")
    let third = immediately { try await scheduler.queue.run(ResultOperation<Void> { journal.write("value") }) }
    note("4")
    end.open()
    for task in [first, second, third] { try await task.value }
    await journal.reaches(7)
    #expect(journal.entries == ["1", "operation", "2", "run", "3", "value", "4"])
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

  @Test func tasksThatPreferTheSchedulerKeepTheirOrderWhateverTheirPriorityAndOvertakeNothing() async {
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
    var expected: [String] = []
    for round in 0..<4 {
      for index in 0..<150 {
        // A round takes 15 milliseconds, which is longer than a drain keeps its thread.
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

  @Test func whoWaitsForItsOperationsHasTheEventsBeforeThemRun() async throws {
    for index in 0..<10 { note("\(index)") }
    let seen = try await onThread {
      scheduler.queue.addOperations([plain("a", journal), plain("b", journal)], waitUntilFinished: true)
      return journal.entries
    }.get()
    #expect(seen == (0..<10).map(String.init) + ["a", "b"])
  }

  @Test func anActorMayNameTheExecutorItself() async {
    #expect(await Counter(on: scheduler).perform { scheduler.isCurrent })
  }

  // MARK: Many threads

  /// What came from each thread. It needs no lock, because only the scheduler uses it.
  private final class Tally: @unchecked Sendable {
    var last: [Int]
    var count = 0
    var disorder = 0
    private var isBusy = false
    private(set) var overlaps = 0

    init(threads: Int) { last = Array(repeating: -1, count: threads) }

    func note(_ index: Int, from thread: Int) {
      if isBusy { overlaps += 1 }
      isBusy = true
      defer { isBusy = false }
      if last[thread] >= index { disorder += 1 }
      last[thread] = index
      count += 1
    }
  }

  @Test(arguments: [true, false]) func everyWayInKeepsEachThreadsOrder(eventsOnly: Bool) async throws {
    let scheduler = SerialScheduler(name: "storm")
    let count = eventsOnly ? 25_000 : 2_500
    let tally = Tally(threads: 4)
    let notes = Notes(on: scheduler)
    let all = Journal<Int>()
    await onThreads(4) { thread in
      var generator = SeededGenerator(seed: UInt64(thread))
      for index in 0..<count {
        let body: @Sendable () -> Void = {
          tally.note(index, from: thread)
          all.write(index)
        }
        switch eventsOnly ? 9 : Int.random(in: 0..<10, using: &generator) {
        case 0: scheduler.queue.addOperation(body)
        case 1: scheduler.queue.addOperation(BlockOperation(block: body))
        case 2: scheduler.queue.addBarrierBlock(body)
        case 3:
          scheduler.queue.addOperation(
            AsyncBlockOperation { operation in
              body()
              operation.finish()
            }
          )
        case 4: scheduler.queue.addOperations([BlockOperation(block: body)])
        case 5, 6: immediately { await notes.perform(body) }
        default: scheduler.schedule(body)
        }
      }
    }
    await all.reaches(4 * count)
    let result = try await scheduler.run { (tally.count, tally.disorder, tally.overlaps) }
    #expect(result == (4 * count, 0, 0))
  }
}

/// An actor that does not conform to `ScheduledActor`.
private actor Counter {
  private nonisolated let scheduler: SerialScheduler

  init(on scheduler: SerialScheduler) { self.scheduler = scheduler }

  nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe scheduler.asUnownedSerialExecutor() }

  func perform<T: Sendable>(_ body: @Sendable () -> T) -> T { body() }
}
