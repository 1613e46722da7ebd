import Foundation
import Operations
import OperationsTestSupport
import Testing

/// Where code runs, and that nothing runs before its turn.
@Suite(.timeLimit(.minutes(5)))
struct CurrentTests {
  private let scheduler = SerialScheduler(name: "here")
  private let other = SerialScheduler(name: "there")
  private let seen = Journal<Bool>()

  /// Whether the code that calls this runs on the first scheduler and not on the second.
  private static func isOn(_ scheduler: SerialScheduler, not other: SerialScheduler) -> Bool {
    scheduler.isCurrent && !other.isCurrent && SerialScheduler.current === scheduler
  }

  @Test func anEventNeverRunsBeforeScheduleReturns() async {
    let journal = Journal<String>()
    scheduler.schedule {
      scheduler.schedule { journal.write("inner") }
      _ = scheduler.schedule(after: .zero) { journal.write("after nothing") }
      scheduler.schedule(coalescing: "key") { journal.write("coalesced") }
      journal.write("outer")
    }
    #expect(await journal.all(4) == ["outer", "inner", "after nothing", "coalesced"])
  }

  @Test func jobsAreOnTheirScheduler() async {
    let others = Notes(on: other)
    #expect(await Notes(on: scheduler).perform { Self.isOn(scheduler, not: other) })
    #expect(!scheduler.isCurrent && SerialScheduler.current == nil)
    await Task(executorPreference: scheduler) {
      #expect(Self.isOn(scheduler, not: other))
      #expect(await others.perform { Self.isOn(other, not: scheduler) })
      #expect(Self.isOn(scheduler, not: other))
      #expect(await MainActor.run { Self.isOn(.main, not: scheduler) })
      #expect((try? await scheduler.run { Self.isOn(scheduler, not: other) }) == true, "a run is no deadlock")
      #expect(Self.isOn(scheduler, not: other))
    }.value
  }

  @Test func eventsAndOperationsAreOnTheScheduler() async throws {
    let notes = Notes(on: scheduler)
    let note: @Sendable () -> Void = {
      seen.write(notes.assumeIsolated { _ in Self.isOn(scheduler, not: other) })
    }
    scheduler.schedule(note)
    scheduler.queue.addOperation(note)
    scheduler.queue.addOperation(BlockOperation(block: note))
    scheduler.queue.addBarrierBlock(note)
    try await scheduler.queue.run(ResultOperation<Void>(note))
    #expect(seen.entries == [true, true, true, true, true])
  }

  @Test(arguments: [true, false]) func aNestedWaitIsOnTheOtherAndThenBack(fromMain: Bool) async throws {
    let home = fromMain ? .main : scheduler
    try await home.run {
      try other.wait {
        seen.write(Self.isOn(other, not: home))
        try home.wait { seen.write(Self.isOn(home, not: other)) }
        seen.write(Self.isOn(other, not: home))
      }
      seen.write(Self.isOn(home, not: other))
    }
    #expect(seen.entries == [true, true, true, true])
  }

  @Test func onMainTheMainOneIsCurrent() async throws {
    #expect(SerialScheduler.main === SerialScheduler.main && SerialScheduler.main.queue === OperationQueue.main)
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
}
