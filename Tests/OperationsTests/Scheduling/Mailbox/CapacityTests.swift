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
    scheduler.schedule { journal.write(text) }
  }

  private func notes(_ range: ClosedRange<Int>, on scheduler: SerialScheduler) -> [Bool] {
    range.map { note("\($0)", on: scheduler) }
  }

  @Test(arguments: EventCapacity.Policy.allCases)
  func belowTheLimitNothingIsDifferent(_ policy: EventCapacity.Policy) async throws {
    let scheduler = scheduler(1000, policy)
    let end = await scheduler.held()
    #expect(notes(1...999, on: scheduler).allSatisfy { $0 })
    let task = immediately { try await scheduler.run { journal.count } }
    end.open()
    #expect(try await task.value == 999)
    #expect(journal.entries == (1...999).map(String.init))
    #expect(scheduler.statistics.eventsDropped == 0)
  }

  @Test(arguments: [
    (EventCapacity.Policy.dropOldest, 4, ["3", "4"]), (.keepLatest, 4, ["1", "4"]), (.fail, 2, ["1", "2"]),
    (.suspend, 2, ["1", "2"]),
  ])
  func thePolicyDecidesWhatRuns(_ policy: EventCapacity.Policy, acceptedCount: Int, expected: [String]) async {
    let scheduler = scheduler(2, policy)
    let end = await scheduler.held()
    #expect(notes(1...4, on: scheduler) == (1...4).map { $0 <= acceptedCount })
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == expected)
    #expect(scheduler.statistics.eventsDropped == 2)
    #expect(note("later", on: scheduler))
    await scheduler.drained()
    #expect(journal.entries.last == "later")
  }

  @Test func whoAwaitsANewcomerThatFailsGetsTheError() async {
    let scheduler = scheduler(1, .fail)
    let end = await scheduler.held()
    #expect(note("event", on: scheduler))
    for result in [
      await immediately { try await scheduler.run { journal.write("run") } }.result,
      await immediately { try await scheduler.send { journal.write("send") } }.result,
    ] {
      #expect(result.code == .overflow && result.message.contains("small"))
    }
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["event"])
  }

  @Test(arguments: [EventCapacity.Policy.dropOldest, .keepLatest])
  func aRunThatIsDroppedThrows(_ policy: EventCapacity.Policy) async {
    let scheduler = scheduler(1, policy)
    let end = await scheduler.held()
    let run = immediately { try await scheduler.run { journal.write("run") } }
    #expect(note("event", on: scheduler))
    // The run ends although the scheduler is held.
    #expect(await run.result.code == .overflow)
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["event"])
  }

  @Test func sendersAndRunsSuspendAndAreServedInTurn() async throws {
    let scheduler = scheduler(1, .suspend)
    let end = await scheduler.held()
    #expect(note("first", on: scheduler))
    let sent = Journal<Int>()
    let tasks = (0..<10).map { index in
      immediately {
        if index.isMultiple(of: 2) {
          try await scheduler.send { journal.write("\(index)") }
        } else {
          try await scheduler.run { journal.write("\(index)") }
        }
        sent.write(index)
      }
    }
    #expect(!note("refused", on: scheduler))
    #expect(sent.count == 0)
    end.open()
    for task in tasks { try await task.value }
    await scheduler.drained()
    #expect(journal.entries == ["first"] + (0..<10).map(String.init))
    #expect(scheduler.statistics.eventsDropped == 1)
  }

  @Test func aSuspendedSenderMayBeCancelled() async throws {
    let scheduler = scheduler(1, .suspend)
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
    let scheduler = scheduler(1, .suspend)
    let end = await scheduler.held()
    #expect(note("accepted", on: scheduler))
    let sender = immediately { try await scheduler.send { journal.write("sent") } }
    let runner = immediately { try await scheduler.run { journal.write("run") } }
    scheduler.shutDown(mode)
    #expect(await sender.result.code == .shutDown)
    #expect(await runner.result.code == .shutDown)
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == (mode == .drain ? ["accepted"] : []))
  }

  @Test func roomThatACancelledRunLeavesIsGivenToASender() async throws {
    let scheduler = scheduler(1, .suspend)
    let end = await scheduler.held()
    let run = immediately { try await scheduler.run { journal.write("run") } }
    let sender = immediately { try await scheduler.send { journal.write("sent") } }
    run.cancel()
    // The event is accepted although the scheduler is held.
    try await sender.value
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["sent"])
  }

  @Test(arguments: EventCapacity.Policy.allCases)
  func jobsAndOperationsAreNeverBounded(_ policy: EventCapacity.Policy) async throws {
    let scheduler = scheduler(1, policy)
    let actor = Notes(on: scheduler, journal)
    let end = await scheduler.held()
    var jobs = (0..<10).map { index in immediately { await actor.note("job \(index)") } }
    #expect(note("event", on: scheduler), "the jobs take no room")
    jobs += (10..<50).map { index in immediately { await actor.note("job \(index)") } }
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
    #expect(journal.entries == (0..<10).map { "job \($0)" } + ["event"] + (10..<50).map { "job \($0)" } + ["operation"])
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
