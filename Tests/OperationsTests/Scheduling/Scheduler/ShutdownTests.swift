import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ShutdownTests {
  private let scheduler = SerialScheduler(name: "ending")
  private let journal = Journal<String>()

  private func note(_ text: String) -> Bool { scheduler.schedule { [journal] in journal.write(text) } }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func afterwardsEventsAreRefused(_ mode: SerialScheduler.ShutdownMode) async {
    #expect(note("before") && !scheduler.isShutDown)
    await scheduler.drained()
    scheduler.shutDown(mode)
    #expect(scheduler.isShutDown)
    #expect(!note("after"))
    let isCoalesced = scheduler.schedule(coalescing: "key") { [journal] in journal.write("coalesced") }
    #expect(!isCoalesced)
    let delivery = SerialScheduler(name: "delivery")
    let journal = journal
    let isAccepted = scheduler.schedule({ 1 }, deliverOn: delivery, { _ in journal.write("delivered") })
    #expect(!isAccepted)
    let scheduler = scheduler
    let sent = await immediately { try await scheduler.send { journal.write("sent") } }.result
    #expect(sent.code == .shutDown)
    await scheduler.drained()
    await delivery.drained()
    #expect(journal.entries == ["before"])
  }

  @Test func byDefaultEverythingAcceptedIsRun() async throws {
    let end = await scheduler.held()
    let (scheduler, journal) = (scheduler, journal)
    for index in 0..<100 { #expect(note("\(index)")) }
    let run = immediately { try await scheduler.run { journal.write("run") } }
    scheduler.queue.addOperation { journal.write("operation") }
    #expect(note("last"))
    scheduler.shutDown()
    #expect(!note("late"))
    end.open()
    try await run.value
    await scheduler.drained()
    #expect(journal.entries == (0..<100).map(String.init) + ["run", "operation", "last"])
  }

  @Test func discardRunsNothingThatHasNotBegun() async {
    let live = LiveCount()
    let end = await scheduler.held()
    let journal = journal
    for index in 0..<100 {
      scheduler.schedule { [token = LiveCount.Token(live)] in withExtendedLifetime(token) { journal.write("\(index)") }
      }
      if index % 10 == 0 { scheduler.queue.addOperation {} }
    }
    scheduler.shutDown(.discard)
    end.open()
    await scheduler.drained()
    #expect(journal.entries.isEmpty)
    await live.none()
  }

  @Test func discardDropsTheRestOfWhatIsBeingRun() async {
    let (scheduler, journal) = (scheduler, journal)
    let end = await scheduler.held()
    for index in 0..<100 {
      scheduler.schedule {
        journal.write("\(index)")
        if index == 49 { scheduler.shutDown(.discard) }
      }
    }
    end.open()
    await scheduler.drained()
    #expect(journal.entries == (0...49).map(String.init))
  }

  @Test func anEventMayShutItDownAndTheRestIsDrained() async {
    let (scheduler, journal) = (scheduler, journal)
    let end = await scheduler.held()
    for index in 0..<100 {
      scheduler.schedule {
        if index == 49 {
          scheduler.shutDown(.drain)
          #expect(!scheduler.schedule { journal.write("late") })
        }
        journal.write("\(index)")
      }
    }
    end.open()
    await scheduler.drained()
    #expect(journal.entries == (0..<100).map(String.init))
  }

  @Test func discardEndsRunsAndWaitsAtOnceWhileAnEventHoldsTheScheduler() async {
    let (scheduler, journal) = (scheduler, journal)
    let end = await scheduler.held()
    let run = immediately { try await scheduler.run { journal.write("run") } }
    let isWaiting = Gate()
    async let wait = onThread {
      isWaiting.open()
      return try scheduler.wait { journal.write("wait") }
    }
    await isWaiting.opened()
    scheduler.shutDown(.discard)
    #expect(await run.result.code == .shutDown)
    #expect(await wait.code == .shutDown)
    // Only now.
    #expect(!end.isOpen)
    end.open()
    await scheduler.drained()
    #expect(journal.entries.isEmpty)
  }

  @Test func discardEndsRunsAndWaitsAtOnceWhileTheSchedulerIsSuspended() async {
    let (scheduler, journal) = (scheduler, journal)
    scheduler.isSuspended = true
    let runs = (0..<10).map { _ in immediately { try await scheduler.run { journal.write("run") } } }
    let isWaiting = Gate()
    async let wait = onThread {
      isWaiting.open()
      return try scheduler.wait { journal.write("wait") }
    }
    await isWaiting.opened()
    scheduler.shutDown(.discard)
    for run in runs { #expect(await run.result.code == .shutDown) }
    #expect(await wait.code == .shutDown)
    scheduler.isSuspended = false
    await scheduler.drained()
    #expect(journal.entries.isEmpty)
  }

  @Test func discardEndsAWaitFromAnotherSchedulerWhichGoesOn() async throws {
    let scheduler = scheduler
    let other = SerialScheduler(name: "other")
    let end = await scheduler.held()
    let isWaiting = Gate()
    let result = Journal<OperationError.Code?>()
    other.schedule {
      isWaiting.open()
      result.write(Result { try scheduler.wait { 1 } }.code)
    }
    await isWaiting.opened()
    scheduler.shutDown(.discard)
    await result.reaches(1)
    #expect(result.entries == [.shutDown])
    #expect(try await other.run { 1 } == 1)
    end.open()
  }

  @Test func drainedWhileSuspendedItRunsEverythingWhenItGoesOn() async throws {
    let (scheduler, journal) = (scheduler, journal)
    scheduler.isSuspended = true
    for index in 0..<10 { #expect(note("\(index)")) }
    let run = immediately { try await scheduler.run { journal.write("run") } }
    scheduler.shutDown(.drain)
    scheduler.isSuspended = false
    try await run.value
    #expect(journal.entries == (0..<10).map(String.init) + ["run"])
  }

  @Test func drainMayBecomeDiscard() async {
    let (scheduler, journal) = (scheduler, journal)
    let end = await scheduler.held()
    #expect(note("event"))
    let run = immediately { try await scheduler.run { journal.write("run") } }
    scheduler.shutDown(.drain)
    scheduler.shutDown(.discard)
    #expect(await run.result.code == .shutDown)
    scheduler.shutDown(.drain)
    scheduler.shutDown(.discard)
    end.open()
    await scheduler.drained()
    #expect(journal.entries.isEmpty)
  }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func jobsStillRunAfterwards(_ mode: SerialScheduler.ShutdownMode) async {
    let scheduler = scheduler
    let notes = Notes(on: scheduler, journal)
    scheduler.shutDown(mode)
    await notes.note("method")
    #expect(await notes.perform { scheduler.isCurrent })
    #expect(await Task(executorPreference: scheduler) { scheduler.isCurrent }.value)
    #expect(journal.entries == ["method"])
  }

  @Test func jobsThatWereWaitingAreRunThoughEventsAreDiscarded() async throws {
    let (scheduler, journal) = (scheduler, journal)
    let notes = Notes(on: scheduler, journal)
    let end = await scheduler.held()
    var jobs: [Task<Void, any Error>] = []
    for index in 0..<20 {
      #expect(note("event"))
      jobs.append(immediately { await notes.note("job \(index)") })
    }
    scheduler.shutDown(.discard)
    end.open()
    for job in jobs { try await job.value }
    #expect(journal.entries == (0..<20).map { "job \($0)" })
  }

  @Test func anActorGoesOnAfterAnAwaitThoughShutDownMeanwhile() async throws {
    let scheduler = scheduler
    let gate = Gate()
    let begun = Gate()
    let task = Task(executorPreference: scheduler) {
      begun.open()
      await gate.opened()
      return scheduler.isCurrent
    }
    await begun.opened()
    scheduler.shutDown(.discard)
    gate.open()
    #expect(await task.value)
  }

  @Test func theLaterPartOfAChainOfWaitsIsRefused() async {
    let scheduler = scheduler
    let other = SerialScheduler(name: "other")
    let code = Journal<OperationError.Code?>()
    scheduler.schedule {
      try? other.wait {
        scheduler.shutDown(.drain)
        code.write(Result { try scheduler.wait { 1 } }.code)
      }
    }
    await code.reaches(1)
    #expect(code.entries == [.shutDown])
  }

  @Test func atAnyMomentEverythingAcceptedIsRunAndNothingElse() async {
    for mode in [SerialScheduler.ShutdownMode.drain, .discard] {
      for _ in 0..<50 {
        let scheduler = SerialScheduler(name: "race")
        let accepted = Journal<Int>()
        let ran = Journal<Int>()
        let ended = Journal<Bool>()
        await onThreads(4) { thread in
          if thread == 3 { return scheduler.shutDown(mode) }
          for index in 0..<100 {
            if scheduler.schedule({ ran.write(index) }) { accepted.write(index) }
          }
          immediately { ended.write(await Result { try await scheduler.run { true } }.code ?? .shutDown == .shutDown) }
        }
        await ended.reaches(3)
        await scheduler.drained()
        #expect(ended.entries == [true, true, true])
        if mode == .drain { #expect(ran.count == accepted.count) }
        #expect(ran.count <= accepted.count)
      }
    }
  }
}

extension Result where Failure == any Error {
  fileprivate init(_ body: @Sendable () async throws -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}
