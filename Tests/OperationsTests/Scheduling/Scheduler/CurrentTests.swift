import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Where code runs, and that nothing runs before its turn.
@Suite(.timeLimit(.minutes(5)))
struct CurrentTests {
  private let scheduler = SerialScheduler(name: "here")
  private let other = SerialScheduler(name: "there")

  /// Whether code finds itself on the one and not on the other.
  private static func isOn(_ scheduler: SerialScheduler, not other: SerialScheduler) -> Bool {
    scheduler.isCurrent && !other.isCurrent && SerialScheduler.current === scheduler
  }

  @Test func anEventNeverRunsBeforeScheduleReturns() async {
    let journal = Journal<String>()
    let scheduler = scheduler
    scheduler.schedule {
      scheduler.schedule { journal.write("inner") }
      _ = scheduler.schedule(after: .zero) { journal.write("after nothing") }
      scheduler.schedule(coalescing: "key") { journal.write("coalesced") }
      journal.write("outer")
    }
    await journal.reaches(4)
    #expect(journal.entries == ["outer", "inner", "after nothing", "coalesced"])
  }

  @Test func onMainAnEventNeverRunsBeforeScheduleReturns() async {
    let journal = Journal<String>()
    await MainActor.run {
      SerialScheduler.main.schedule { journal.write("event") }
      SerialScheduler.scheduleOnMain { journal.write("main event") }
      journal.write("outer")
    }
    await journal.reaches(3)
    #expect(journal.entries == ["outer", "event", "main event"])
  }

  @Test func anIdleSchedulerDoesNotBorrowTheThreadThatSchedules() async throws {
    let scheduler = scheduler
    let same = try await onThread {
      let thread = ObjectIdentifier(Thread.current)
      let seen = Locked<ObjectIdentifier?>(nil)
      let done = DispatchSemaphore(value: 0)
      scheduler.schedule {
        seen.withLock { $0 = ObjectIdentifier(Thread.current) }
        done.signal()
      }
      done.wait()
      return seen.withLock { $0 } == thread
    }.get()
    #expect(!same)
  }

  @Test func eventsAreOnTheirScheduler() async throws {
    let (scheduler, other) = (scheduler, other)
    #expect(try await scheduler.run { Self.isOn(scheduler, not: other) })
    #expect(try await other.run { Self.isOn(other, not: scheduler) })
    let seen = Journal<Bool>()
    scheduler.schedule { seen.write(Self.isOn(scheduler, not: other)) }
    scheduler.schedule(after: .zero) { seen.write(Self.isOn(scheduler, not: other)) }
    scheduler.schedule(coalescing: "key") { seen.write(Self.isOn(scheduler, not: other)) }
    await seen.reaches(3)
    #expect(seen.entries == [true, true, true])
  }

  @Test func jobsAreOnTheirScheduler() async {
    let (scheduler, other) = (scheduler, other)
    let notes = Notes(on: scheduler)
    let others = Notes(on: other)
    #expect(await notes.perform { Self.isOn(scheduler, not: other) })
    await Task(executorPreference: scheduler) {
      #expect(Self.isOn(scheduler, not: other))
      // There and back.
      #expect(await others.perform { Self.isOn(other, not: scheduler) })
      #expect(Self.isOn(scheduler, not: other))
      #expect(await MainActor.run { Self.isOn(.main, not: scheduler) })
      #expect(Self.isOn(scheduler, not: other))
    }.value
  }

  @Test func operationsAreOnTheScheduler() async throws {
    let (scheduler, other) = (scheduler, other)
    let seen = Journal<Bool>()
    let note: @Sendable () -> Void = { seen.write(Self.isOn(scheduler, not: other)) }
    scheduler.queue.addOperation(note)
    scheduler.queue.addOperation(BlockOperation(block: note))
    scheduler.queue.addBarrierBlock(note)
    scheduler.queue.addOperation(
      AsyncBlockOperation { operation in
        note()
        operation.finish()
      }
    )
    try await scheduler.queue.run(ResultOperation<Void> { note() })
    #expect(seen.entries == [true, true, true, true, true])
  }

  @Test func aDirectCallFindsAnActorOfTheSameSchedulerIsolated() async throws {
    let notes = Notes(on: scheduler)
    let scheduler = scheduler
    let neighbour = Notes(on: scheduler)
    #expect(try await scheduler.run { notes.assumeIsolated { _ in scheduler.isCurrent } })
    #expect(await neighbour.perform { notes.assumeIsolated { _ in scheduler.isCurrent } })
    let seen = Journal<Bool>()
    scheduler.queue.addOperation { seen.write(notes.assumeIsolated { _ in scheduler.isCurrent }) }
    await seen.reaches(1)
    #expect(seen.entries == [true])
  }

  @Test func aNestedWaitIsOnTheOtherAndThenBack() async throws {
    let (scheduler, other) = (scheduler, other)
    let seen = Journal<Bool>()
    let isFine = try await scheduler.run {
      try other.wait {
        seen.write(Self.isOn(other, not: scheduler))
        try scheduler.wait { seen.write(Self.isOn(scheduler, not: other)) }
        seen.write(Self.isOn(other, not: scheduler))
      }
      return Self.isOn(scheduler, not: other)
    }
    #expect(isFine && seen.entries == [true, true, true])
  }

  @Test func elsewhereIsNowhere() async {
    let scheduler = scheduler
    let isNowhere: @Sendable () -> Bool = { !scheduler.isCurrent && SerialScheduler.current == nil }
    #expect(isNowhere())
    #expect((try? await onThread(isNowhere).get()) == true)
    #expect(await Task.detached { isNowhere() }.value)
    let journal = Journal<Bool>()
    OperationQueue().addOperation { journal.write(isNowhere()) }
    DispatchQueue.global().async { journal.write(isNowhere()) }
    await journal.reaches(2)
    #expect(journal.entries == [true, true])
  }

  @Test func afterAnAwaitFromASchedulersJobOnlyTheJobIsOnIt() async {
    let scheduler = scheduler
    let notes = Notes(on: scheduler)
    #expect(await notes.perform { scheduler.isCurrent })
    #expect(!scheduler.isCurrent && SerialScheduler.current == nil)
  }

  @Test func onMainTheMainOneIsCurrent() async throws {
    let scheduler = scheduler
    let seen = Journal<Bool>()
    let note: @Sendable () -> Void = { seen.write(Self.isOn(.main, not: scheduler)) }
    await MainActor.run(body: note)
    SerialScheduler.main.schedule(note)
    SerialScheduler.scheduleOnMain(note)
    OperationQueue.main.addOperation(note)
    DispatchQueue.main.async(execute: note)
    try await SerialScheduler.main.run(note)
    await seen.reaches(6)
    #expect(seen.entries.allSatisfy { $0 })
    #expect(!SerialScheduler.main.isCurrent)
  }

  @Test func aWaitFromMainLeavesMainAndComesBack() async throws {
    let scheduler = scheduler
    let seen = Journal<Bool>()
    try await MainActor.run {
      try scheduler.wait { seen.write(Self.isOn(scheduler, not: .main)) }
      seen.write(Self.isOn(.main, not: scheduler))
    }
    #expect(seen.entries == [true, true])
  }

  @Test func theMainSchedulerIsTheMainQueues() {
    #expect(SerialScheduler.main.queue === OperationQueue.main)
    #expect(SerialScheduler.main === SerialScheduler.main)
  }
}
