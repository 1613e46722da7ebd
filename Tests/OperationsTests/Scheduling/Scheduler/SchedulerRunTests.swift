import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SchedulerRunTests {
  private let scheduler = SerialScheduler(name: "runner")
  private let journal = Journal<String>()

  @Test func itReturnsTheValue() async throws {
    let scheduler = scheduler
    let (value, isCurrent) = try await scheduler.run { (6 * 7, scheduler.isCurrent) }
    #expect(value == 42 && isCurrent)
    let nothing: String? = try await scheduler.run { nil }
    #expect(nothing == nil)
  }

  @Test func itThrowsTheBodysErrorAndTheSchedulerGoesOn() async throws {
    await #expect(throws: TestError("broken")) { try await scheduler.run { throw TestError("broken") } }
    #expect(try await scheduler.run { 1 } == 1)
  }

  @Test func itComesAfterWhatWasScheduledBefore() async throws {
    let journal = journal
    for index in 0..<500 { scheduler.schedule { journal.write("\(index)") } }
    let count = try await scheduler.run { journal.count }
    #expect(count == 500)
  }

  @Test func fromAnActorOnTheSameSchedulerItIsNoDeadlock() async throws {
    let scheduler = scheduler
    let task = Task(executorPreference: scheduler) { try await scheduler.run { scheduler.isCurrent } }
    #expect(try await task.value)
  }

  @Test func onMainItRunsOnTheMainThread() async throws {
    #expect(try await SerialScheduler.main.run { MainActor.assumeIsolated { true } })
  }

  @Test func cancelledBeforeItBeginsItNeverRuns() async throws {
    let journal = journal
    let scheduler = scheduler
    let live = LiveCount()
    let end = await scheduler.held()
    let task = immediately { [token = LiveCount.Token(live)] in
      try await scheduler.run { withExtendedLifetime(token) { journal.write("ran") } }
    }
    task.cancel()
    // It ends at once, though the scheduler is held.
    await #expect(throws: CancellationError.self) { try await task.value }
    end.open()
    await scheduler.drained()
    #expect(journal.entries.isEmpty)
    await live.none()
  }

  @Test func inACancelledTaskItNeverRuns() async {
    let journal = journal
    let scheduler = scheduler
    let task = Task {
      unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
      try await scheduler.run { journal.write("ran") }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    await scheduler.drained()
    #expect(journal.entries.isEmpty)
  }

  @Test func cancelledAfterItHasBegunItGoesOnToTheEnd() async throws {
    let scheduler = scheduler
    let begun = Gate()
    let end = Gate()
    let task = immediately {
      try await scheduler.run {
        begun.open()
        end.pass()
        return "done"
      }
    }
    await begun.opened()
    task.cancel()
    end.open()
    #expect(try await task.value == "done")
  }

  @Test func cancelledAtAnyMomentItEndsOnce() async {
    let scheduler = scheduler
    for _ in 0..<500 {
      let ran = Journal<Int>()
      let task = immediately { try await scheduler.run { ran.write(1) } }
      await onThreads(1) { _ in task.cancel() }
      switch await task.result {
      case .success: #expect(ran.count == 1)
      case .failure(let error): #expect(error is CancellationError && ran.count == 0)
      }
    }
  }

  @Test(arguments: [SerialScheduler.ShutdownMode.drain, .discard])
  func afterAShutdownItThrows(_ mode: SerialScheduler.ShutdownMode) async {
    let journal = journal
    scheduler.shutDown(mode)
    let scheduler = scheduler
    let result = await immediately { try await scheduler.run { journal.write("ran") } }.result
    #expect(result.code == .shutDown)
    #expect(result.message.contains("runner"))
    #expect(journal.entries.isEmpty)
  }

  @Test func manyAtOnceAllReturn() async throws {
    let scheduler = scheduler
    let sum = try await withThrowingTaskGroup(of: Int.self) { group in
      for index in 0..<1000 { group.addTask { try await scheduler.run { index } } }
      return try await group.reduce(0, +)
    }
    #expect(sum == 499_500)
  }

  @Test func anObjectIsHandedToItsBody() async throws {
    let object = SchedulableObject([1, 2, 3], on: scheduler)
    #expect(try await object.run { $0.count } == 3)
    await #expect(throws: TestError("broken")) { try await object.run { _ in throw TestError("broken") } }
    let shelf = Shelf(on: scheduler)
    try await shelf.run { shelf in shelf.items.append(4) }
    #expect(try await shelf.run { $0.items } == [4])
    shelf.schedule { shelf in shelf.items.append(5) }
    shelf.schedule { shelf in shelf.items.append(6) }
    #expect(try await shelf.run { $0.items } == [4, 5, 6])
  }
}
