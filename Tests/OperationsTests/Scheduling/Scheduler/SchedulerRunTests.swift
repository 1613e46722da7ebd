import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct SchedulerRunTests {
  private let scheduler = SerialScheduler(name: "runner")
  private let journal = Journal<String>()

  @Test func itReturnsTheValueAfterWhatWasScheduledBefore() async throws {
    for index in 0..<500 { scheduler.schedule { journal.write("\(index)") } }
    let (count, isCurrent) = try await scheduler.run { (journal.count, scheduler.isCurrent) }
    #expect(count == 500 && isCurrent)
  }

  @Test func itThrowsTheBodysErrorAndTheSchedulerGoesOn() async throws {
    await #expect(throws: TestError("broken")) { try await scheduler.run { throw TestError("broken") } }
    #expect(try await scheduler.run { 1 } == 1)
  }

  @Test func fromAnActorOnTheSameSchedulerItIsNoDeadlock() async throws {
    let task = Task(executorPreference: scheduler) { try await scheduler.run { scheduler.isCurrent } }
    #expect(try await task.value)
  }

  @Test func anObjectIsHandedToItsBody() async throws {
    let object = SchedulableObject([1, 2, 3], on: scheduler)
    let shelf = Shelf(on: scheduler)
    #expect(try await object.run { $0.count } == 3)
    for index in 4...6 { shelf.schedule { shelf in shelf.items.append(index) } }
    #expect(try await shelf.run { $0.items } == [4, 5, 6])
    let counts = try await onThread { (try shelf.wait { $0.items.count }, try object.wait { $0.count }) }.get()
    #expect(counts == (3, 3))
  }

  // MARK: Cancelling

  @Test func cancelledBeforeItBeginsItNeverRuns() async throws {
    let live = LiveCount()
    let end = await scheduler.held()
    let task = immediately { [body = live.counted { journal.write("ran") }] in try await scheduler.run(body) }
    task.cancel()
    // The task ends although the scheduler is held.
    await #expect(throws: CancellationError.self) { try await task.value }
    await scheduler.drained(afterOpening: end)
    #expect(journal.entries.isEmpty)
    await live.none()
  }

  @Test func inACancelledTaskItNeverRuns() async {
    let task = Task {
      unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
      try await scheduler.run { journal.write("ran") }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    await scheduler.drained()
    #expect(journal.entries.isEmpty)
  }

  @Test func cancelledAfterItHasBegunItGoesOnToTheEnd() async throws {
    let (begun, end) = (Gate(), Gate())
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
}
