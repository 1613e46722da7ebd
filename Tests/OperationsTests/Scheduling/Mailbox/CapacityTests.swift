import Foundation
import Operations
import OperationsTestSupport
import Testing

/// A scheduler that takes so many events and no more.
@Suite(.timeLimit(.minutes(5)))
struct CapacityTests {
  private let journal = Journal<String>()

  private func scheduler(_ count: Int, _ policy: EventCapacity.Policy) -> SerialScheduler {
    SerialScheduler(name: "small", capacity: EventCapacity(count, whenFull: policy))
  }

  private func note(_ text: String, on scheduler: SerialScheduler) -> Bool {
    scheduler.schedule { [journal] in journal.write(text) }
  }

  private func notes(_ range: ClosedRange<Int>, on scheduler: SerialScheduler) -> [Bool] {
    range.map { note("\($0)", on: scheduler) }
  }

  @Test(arguments: EventCapacity.Policy.allCases)
  func belowTheLimitNothingIsDifferent(_ policy: EventCapacity.Policy) async throws {
    let scheduler = scheduler(1000, policy)
    let end = await scheduler.held()
    #expect(notes(1...999, on: scheduler).allSatisfy { $0 })
    let journal = journal
    let task = immediately { try await scheduler.run { journal.count } }
    end.open()
    #expect(try await task.value == 999)
    #expect(journal.entries == (1...999).map(String.init))
    #expect(scheduler.statistics.eventsDropped == 0)
  }

  @Test(arguments: EventCapacity.Policy.allCases)
  func theOneThatIsBeingRunDoesNotCount(_ policy: EventCapacity.Policy) async {
    let scheduler = scheduler(2, policy)
    let end = await scheduler.held()
    #expect(notes(1...2, on: scheduler) == [true, true])
    end.open()
    await scheduler.drained()
    #expect(notes(3...3, on: scheduler) == [true])
    await scheduler.drained()
    #expect(journal.entries == ["1", "2", "3"])
  }

  @Test func theOldestIsDropped() async {
    let scheduler = scheduler(2, .dropOldest)
    let end = await scheduler.held()
    #expect(notes(1...5, on: scheduler).allSatisfy { $0 })
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["4", "5"])
    #expect(scheduler.statistics.eventsDropped == 3)
  }

  @Test func theLatestIsKept() async {
    let scheduler = scheduler(2, .keepLatest)
    let end = await scheduler.held()
    #expect(notes(1...5, on: scheduler).allSatisfy { $0 })
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["1", "5"])
    #expect(scheduler.statistics.eventsDropped == 3)
  }

  @Test func theNewcomerFails() async {
    let (scheduler, journal) = (scheduler(2, .fail), journal)
    let end = await scheduler.held()
    #expect(notes(1...4, on: scheduler) == [true, true, false, false])
    #expect(await immediately { try await scheduler.run { journal.write("run") } }.result.code == .overflow)
    let sent = await immediately { try await scheduler.send { journal.write("send") } }.result
    #expect(sent.code == .overflow && sent.message.contains("small"))
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["1", "2"])
    #expect(note("later", on: scheduler))
    await journal.reaches(3)
  }

  @Test(arguments: [EventCapacity.Policy.dropOldest, .keepLatest])
  func aRunThatIsDroppedThrows(_ policy: EventCapacity.Policy) async {
    let (scheduler, journal) = (scheduler(1, policy), journal)
    let end = await scheduler.held()
    let run = immediately { try await scheduler.run { journal.write("run") } }
    #expect(note("event", on: scheduler))
    // At once, though the scheduler is held.
    #expect(await run.result.code == .overflow)
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["event"])
  }

  @Test func whoCannotSuspendIsRefused() async {
    let scheduler = scheduler(2, .suspend)
    let end = await scheduler.held()
    #expect(notes(1...4, on: scheduler) == [true, true, false, false])
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["1", "2"])
  }

  @Test func sendersSuspendAndAreServedInTurn() async throws {
    let (scheduler, journal) = (scheduler(2, .suspend), journal)
    let end = await scheduler.held()
    let sent = Journal<Int>()
    let senders = (0..<10).map { index in
      immediately {
        try await scheduler.send { journal.write("\(index)") }
        sent.write(index)
      }
    }
    #expect(Set(sent.entries).isSubset(of: [0, 1]))
    end.open()
    for sender in senders { try await sender.value }
    await scheduler.drained()
    #expect(journal.entries == (0..<10).map(String.init))
    #expect(scheduler.statistics.eventsDropped == 0)
  }

  @Test func aRunSuspendsToo() async throws {
    let (scheduler, journal) = (scheduler(1, .suspend), journal)
    let end = await scheduler.held()
    #expect(note("event", on: scheduler))
    let runs = (0..<5).map { index in
      immediately {
        try await scheduler.run {
          journal.write("\(index)")
          return index
        }
      }
    }
    end.open()
    for (index, run) in runs.enumerated() { #expect(try await run.value == index) }
    #expect(journal.entries == ["event", "0", "1", "2", "3", "4"])
  }

  @Test func nobodyOvertakesThoseWhoAreSuspended() async throws {
    let (scheduler, journal) = (scheduler(1, .suspend), journal)
    let end = await scheduler.held()
    #expect(note("first", on: scheduler))
    let sender = immediately { try await scheduler.send { journal.write("sent") } }
    #expect(!note("refused", on: scheduler))
    end.open()
    try await sender.value
    await scheduler.drained()
    #expect(journal.entries == ["first", "sent"])
  }

  @Test func aSuspendedSenderMayBeCancelled() async throws {
    let (scheduler, journal) = (scheduler(1, .suspend), journal)
    let end = await scheduler.held()
    #expect(note("first", on: scheduler))
    let cancelled = immediately { try await scheduler.send { journal.write("cancelled") } }
    let other = immediately { try await scheduler.send { journal.write("other") } }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    end.open()
    try await other.value
    await scheduler.drained()
    #expect(journal.entries == ["first", "other"])
  }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func aShutdownEndsThoseWhoAreSuspended(_ mode: SerialScheduler.ShutdownMode) async {
    let (scheduler, journal) = (scheduler(1, .suspend), journal)
    let end = await scheduler.held()
    #expect(note("accepted", on: scheduler))
    let sender = immediately { try await scheduler.send { journal.write("sent") } }
    let runner = immediately { try await scheduler.run { journal.write("run") } }
    scheduler.shutDown(mode)
    #expect(await sender.result.code == .shutDown)
    #expect(await runner.result.code == .shutDown)
    end.open()
    await scheduler.drained()
    #expect(journal.entries == (mode == .drain ? ["accepted"] : []))
  }

  @Test func roomThatACancelledRunLeavesIsGivenToASender() async throws {
    let (scheduler, journal) = (scheduler(1, .suspend), journal)
    let end = await scheduler.held()
    let run = immediately { try await scheduler.run { journal.write("run") } }
    let sender = immediately { try await scheduler.send { journal.write("sent") } }
    run.cancel()
    // Accepted, though the scheduler is held.
    try await sender.value
    end.open()
    await scheduler.drained()
    #expect(journal.entries == ["sent"])
  }

  @Test(arguments: EventCapacity.Policy.allCases)
  func jobsAndOperationsAreNeverBounded(_ policy: EventCapacity.Policy) async throws {
    let (scheduler, journal) = (scheduler(1, policy), journal)
    let actor = Notes(on: scheduler, journal)
    let end = await scheduler.held()
    #expect(note("event", on: scheduler))
    let jobs = (0..<50).map { index in immediately { await actor.note("job \(index)") } }
    let tasks = (0..<50).map { index in Task(executorPreference: scheduler) { index } }
    scheduler.queue.addOperation { journal.write("operation") }
    let waiting = Gate()
    async let wait = onThread {
      waiting.open()
      return try scheduler.wait { 1 }
    }
    await waiting.opened()
    #expect(scheduler.statistics.eventsDropped == 0)
    end.open()
    for job in jobs { try await job.value }
    for (index, task) in tasks.enumerated() { #expect(await task.value == index) }
    #expect(try await wait.get() == 1)
    await scheduler.drained()
    #expect(journal.entries == ["event"] + (0..<50).map { "job \($0)" } + ["operation"])
  }

  @Test func jobsTakeNoRoom() async {
    let scheduler = scheduler(2, .fail)
    let actor = Notes(on: scheduler, journal)
    let end = await scheduler.held()
    for index in 0..<10 { immediately { await actor.note("job \(index)") } }
    #expect(notes(1...3, on: scheduler) == [true, true, false])
    end.open()
    await journal.reaches(12)
    #expect(journal.entries.suffix(2) == ["1", "2"])
  }

  @Test(arguments: EventCapacity.Policy.allCases)
  func underAStormFromFourThreadsTheBooksBalance(_ policy: EventCapacity.Policy) async {
    let scheduler = scheduler(16, policy)
    let accepted = Journal<Int>()
    let ran = Locked(0)
    await onThreads(4) { thread in
      for index in 0..<5000 {
        if scheduler.schedule({ ran.withLock { $0 += 1 } }) { accepted.write(index) }
      }
    }
    await scheduler.drained()
    let statistics = scheduler.statistics
    #expect(statistics.eventsQueued == 0 && statistics.eventsRun == ran.withLock { $0 })
    #expect(statistics.eventsRun + statistics.eventsDropped == 20_000)
    if policy == .fail || policy == .suspend { #expect(accepted.count == statistics.eventsRun) }
    if policy == .dropOldest || policy == .keepLatest { #expect(accepted.count == 20_000) }
  }
}
