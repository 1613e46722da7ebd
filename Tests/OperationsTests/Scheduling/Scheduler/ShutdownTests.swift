import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// The end of a scheduler. Every object lives exactly as long as it is needed.
@Suite(.timeLimit(.minutes(5)))
struct ShutdownTests {
  private let scheduler = SerialScheduler(name: "ending")
  private let other = SerialScheduler(name: "other")
  private let journal = Journal<String>()
  private let live = LiveCount()

  private func note(_ text: String) -> Bool { scheduler.schedule { journal.write(text) } }
  private func coalesce(_ text: String) -> Bool { scheduler.schedule(coalescing: "key") { journal.write(text) } }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func afterwardsEventsAreRefused(_ mode: SerialScheduler.ShutdownMode) async {
    #expect(note("before") && !scheduler.isShutDown)
    await scheduler.drained()
    scheduler.shutDown(mode)
    #expect(scheduler.isShutDown)
    #expect(!note("after") && !coalesce("coalesced"))
    let isDelivered = scheduler.schedule({ 1 }, deliverOn: other, { _ in journal.write("delivered") })
    let isScheduled = Shelf(on: scheduler).scheduleWeakly { _ in journal.write("weak") }
    #expect(!isDelivered && !isScheduled)
    let results = [
      await immediately { try await scheduler.send { journal.write("sent") } }.result,
      await immediately { try await scheduler.run { journal.write("ran") } }.result,
      await onThread { try scheduler.wait { journal.write("waited") } },
    ]
    for result in results { #expect(result.code == .shutDown && result.message.contains("ending")) }
    await scheduler.drained()
    await other.drained()
    #expect(journal.entries == ["before"])
  }

  @Test func aCancelledTask_doesNotWaitForASuspendedScheduler() async throws {
    scheduler.isSuspended = true
    #expect(note("held"))
    let wait = immediately { await scheduler.drained() }
    wait.cancel()
    try await wait.value
    #expect(journal.entries.isEmpty)
    scheduler.isSuspended = false
    await scheduler.drained()
    #expect(journal.entries == ["held"])
  }

  @Test func byDefaultEverythingAcceptedIsRun() async throws {
    scheduler.isSuspended = true
    for index in 0..<100 { #expect(note("\(index)")) }
    let run = immediately { try await scheduler.run { journal.write("run") } }
    scheduler.queue.addOperation { journal.write("operation") }
    #expect(coalesce("last"))
    scheduler.shutDown()
    #expect(!note("late"))
    // The event that was accepted is not replaced.
    #expect(!coalesce("later"))
    scheduler.isSuspended = false
    try await run.value
    await scheduler.drained()
    #expect(journal.entries == (0..<100).map(String.init) + ["run", "operation", "last"])
  }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func anEventMayShutItDown(_ mode: SerialScheduler.ShutdownMode) async {
    let end = await scheduler.held()
    #expect(note("before"))
    scheduler.schedule {
      scheduler.shutDown(mode)
      #expect(!note("late"))
    }
    #expect(note("after"))
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries == (mode == .drain ? ["before", "after"] : ["before"]))
  }

  @Test func discardEndsRunsAndWaitsAtOnce() async throws {
    let end = await scheduler.held()
    let runs = (0..<10).map { _ in immediately { try await scheduler.run { journal.write("run") } } }
    let waiting = Journal<String>()
    async let wait = onThread {
      waiting.write("thread")
      return try scheduler.wait { journal.write("wait") }
    }
    let otherWait = immediately {
      try await other.run {
        waiting.write("other")
        try scheduler.wait { journal.write("wait of another") }
      }
    }
    await waiting.reaches(2)
    scheduler.shutDown(.discard)
    for run in runs + [otherWait] { #expect(await run.result.code == .shutDown) }
    #expect(await wait.code == .shutDown)
    #expect(try await other.run { 1 } == 1)
    // The scheduler is still held.
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries.isEmpty)
  }

  @Test func theLaterPartOfAChainOfWaitsIsRefused() async throws {
    let code = try await scheduler.run {
      try other.wait {
        scheduler.shutDown(.drain)
        return Result { try scheduler.wait { 1 } }.code
      }
    }
    #expect(code == .shutDown)
  }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func jobsThatWaitAreRun_andJobsBeginAndGoOnAfterwards(_ mode: SerialScheduler.ShutdownMode) async throws {
    let (begun, gate, notes) = (Gate(), Gate(), Notes(on: scheduler, journal))
    let task = Task(executorPreference: scheduler) {
      begun.open()
      await gate.opened()
      return scheduler.isCurrent
    }
    await begun.opened()
    let end = await scheduler.held()
    let names = (0..<20).map { "job \($0)" }
    let jobs = names.map { name in
      #expect(note("event"))
      return immediately { await notes.note(name) }
    }
    scheduler.shutDown(mode)
    gate.open()
    end.open()
    for job in jobs { try await job.value }
    #expect(journal.entries == names.flatMap { mode == .drain ? ["event", $0] : [$0] })
    #expect(await task.value)
    #expect(await notes.perform { scheduler.isCurrent })
    #expect(await Task(executorPreference: scheduler) { scheduler.isCurrent }.value)
  }

  // MARK: Release

  @Test func oneThatIsUnheldIsReleasedWhenItHasDrained() async throws {
    var scheduler: SerialScheduler? = SerialScheduler(name: "short-lived")
    let reference = WeakReference(scheduler!)
    try await scheduler?.run {}
    await Notes(on: scheduler!).note("job")
    let end = await scheduler!.held()
    let names = (0..<10).map(String.init)
    for name in names {
      scheduler?.schedule { journal.write(name) }
      scheduler?.queue.addOperation(NoteOperation(name, journal))
    }
    scheduler = nil
    #expect(reference.object != nil)
    end.open()
    await poll { reference.object == nil }
    // The last operation may run after the last event, which releases the scheduler.
    #expect(await journal.all(2 * names.count) == names.flatMap { [$0, $0] })
  }

  @Test(arguments: [true, false])
  func anUnheldOneLivesUntilItsDelayedEventsHaveRunOrAreCancelled(isCancelled: Bool) async {
    let clock = ManualClock()
    var scheduler: SerialScheduler? = SerialScheduler(name: "later", clock: clock)
    let reference = WeakReference(scheduler!)
    let event = scheduler?.schedule(after: .seconds(5)) { journal.write("late") }
    scheduler = nil
    #expect(reference.object != nil)
    if isCancelled {
      event?.cancel()
      #expect(reference.object == nil && clock.sleepers == 0)
    } else {
      clock.advance(by: .seconds(5))
      await journal.reaches(1)
    }
  }

  /// - Parameter length: The length of an earlier event. After a long one the drain leaves the rest to the next drain.
  @Test(arguments: [Duration.zero, .milliseconds(11)])
  func aClosureIsReleasedBeforeTheNextOneRuns(length: Duration) async throws {
    let end = await scheduler.held()
    scheduler.schedule { work(for: length) }
    let seen = Journal<Int>()
    for _ in 0..<100 { scheduler.schedule(live.counted { seen.write(live.alive) }) }
    #expect(live.alive == 100)
    end.open()
    #expect(await seen.all(100) == (1...100).reversed())
    await live.none()
  }
}
