import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct CapacityTests {
  private let journal = Journal<String>()

  private func held(_ count: Int, _ policy: EventCapacity.Policy) async -> (SerialScheduler, Gate) {
    let scheduler = SerialScheduler(name: "small", capacity: EventCapacity(count, whenFull: policy))
    return (scheduler, await scheduler.held())
  }

  private func note(_ text: String, on scheduler: SerialScheduler) -> Bool {
    scheduler.schedule { journal.write(text) }
  }

  @Test(arguments: [
    (EventCapacity.Policy.dropOldest, 4, ["3", "4"]), (.replaceLatest, 4, ["1", "4"]), (.fail, 2, ["1", "2"]),
    (.suspend, 2, ["1", "2"]),
  ])
  func thePolicyDecidesWhatRuns(_ policy: EventCapacity.Policy, acceptedCount: Int, expected: [String]) async {
    let (scheduler, end) = await held(2, policy)
    #expect((1...4).map { note("\($0)", on: scheduler) } == (1...4).map { $0 <= acceptedCount })
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == expected)
    #expect(scheduler.statistics.eventsDropped == 2)
    #expect(note("later", on: scheduler))
    await scheduler.drained()
    #expect(journal.entries.last == "later")
  }

  @Test(arguments: [nil, .drain, .discard] as [SerialScheduler.ShutdownMode?])
  func runAndSendOnAFullScheduler_throwIfTheyAreRefusedOrItIsShutDown(mode: SerialScheduler.ShutdownMode?) async {
    let (scheduler, end) = await held(1, mode == nil ? .fail : .suspend)
    #expect(note("event", on: scheduler))
    let tasks = [
      immediately { try await scheduler.run { journal.write("run") } },
      immediately { try await scheduler.send { journal.write("send") } },
    ]
    if let mode { scheduler.shutDown(mode) }
    let code: OperationError.Code = mode == nil ? .overflow : .shutDown
    for task in tasks {
      let result = await task.result
      #expect(result.code == code && result.message.contains("small"))
    }
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == (mode == .discard ? [] : ["event"]))
  }

  /// The release of the event that makes room schedules another one, which drops the event of the `send`.
  @Test func aSendWhoseEventIsDroppedAtOnce_returns() async {
    final class Scheduling: Sendable {
      let scheduler: SerialScheduler
      init(_ scheduler: SerialScheduler) { self.scheduler = scheduler }
      deinit { scheduler.schedule {} }
    }
    let (scheduler, end) = await held(1, .dropOldest)
    do {
      let token = Scheduling(scheduler)
      scheduler.schedule { _ = token }
    }
    #expect(await immediately { try await scheduler.send { journal.write("send") } }.result.code == nil)
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries.isEmpty && scheduler.statistics.eventsDropped == 2)
  }

  @Test(arguments: [EventCapacity.Policy.dropOldest, .replaceLatest])
  func aRunThatIsDroppedThrows(_ policy: EventCapacity.Policy) async {
    let (scheduler, end) = await held(1, policy)
    let run = immediately { try await scheduler.run { journal.write("run") } }
    #expect(note("event", on: scheduler))
    // The run ends although the scheduler is held.
    #expect(await run.result.code == .overflow)
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["event"])
  }

  @Test func sendersAndRunsSuspendAndAreServedInTurn() async throws {
    let (scheduler, end) = await held(1, .suspend)
    #expect(note("first", on: scheduler))
    let sent = Journal<Int>()
    let tasks = (0..<10).map { index in
      let event: @Sendable () -> Void = { journal.write("\(index)") }
      return immediately {
        if index.isMultiple(of: 2) { try await scheduler.send(event) } else { try await scheduler.run(event) }
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

  @Test func roomThatACancelledRunLeaves_isGivenToASenderThatIsNotCancelled() async throws {
    let (scheduler, end) = await held(1, .suspend)
    let run = immediately { try await scheduler.run { journal.write("run") } }
    let cancelled = immediately { try await scheduler.send { journal.write("cancelled") } }
    let sender = immediately { try await scheduler.send { journal.write("sent") } }
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await cancelled.value }
    run.cancel()
    // The event is accepted although the scheduler is held.
    try await sender.value
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == ["sent"])
  }

  @Test(arguments: EventCapacity.Policy.allCases)
  func jobsAndOperationsAreNeverBounded(_ policy: EventCapacity.Policy) async throws {
    let (scheduler, end) = await held(1, policy)
    let actor = Notes(on: scheduler, journal)
    let early = immediately { await actor.note("early job") }
    #expect(note("event", on: scheduler), "the job takes no room")
    let late = immediately { await actor.note("late job") }
    scheduler.queue.addOperation { journal.write("operation") }
    let waiting = Gate()
    async let wait = onThread {
      waiting.open()
      return try scheduler.wait { 1 }
    }
    await waiting.opened()
    #expect(scheduler.statistics.eventsDropped == 0)
    end.open()
    for job in [early, late] { try await job.value }
    #expect(try await wait.get() == 1)
    await scheduler.drained()
    #expect(journal.entries == ["early job", "event", "late job", "operation"])
  }
}
