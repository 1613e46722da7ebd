import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct TaskOperationTests {
  private final class Doubling: TaskOperation<Int>, @unchecked Sendable {
    override func run() async throws -> Int {
      await Task.yield()
      return 42
    }
  }

  @Test func aClosureOrASubclassDoesTheWork() async throws {
    let queue = OperationQueue()
    #expect(try await queue.run(TaskOperation { await Task { "value" }.value }) == "value")
    #expect(try await queue.run(Doubling()) == 42)
  }

  @Test func whatItThrowsIsTheError() async throws {
    let operation = TaskOperation<Int> { throw TestError("lost") }
    await #expect(throws: TestError("lost")) { try await OperationQueue().run(operation) }
    #expect(!operation.isCancelled)
  }

  @Test func aThousandWaitOnTwoThreads() async throws {
    let gate = Gate()
    let begun = Journal<Int>()
    let operations = (0..<1000).map { index in
      TaskOperation {
        begun.write(index)
        await gate.opened()
        return index
      }
    }
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1000
    let threads = DispatchQueue(label: "two threads", attributes: .concurrent)
    unsafe queue.underlyingQueue = threads
    let all = collect(operations)
    async let values = queue.run(graphEndingIn: all)
    await begun.reaches(1000)
    // All of them wait, and yet a thread can be had.
    #expect(try await OperationQueue().run(ResultOperation { true }))
    gate.open()
    #expect(try await values == Array(0..<1000))
  }

  @Test func cancellingTheOperationCancelsTheTask() async {
    let begun = Gate()
    let clock = ManualClock()
    let operation = TaskOperation<Void> {
      begun.open()
      try await clock.sleep(for: .seconds(1))
    }
    OperationQueue().addOperation(operation)
    await begun.opened()
    operation.cancel()
    await #expect(throws: CancellationError.self) { try await operation.completed() }
    #expect(operation.errors.isEmpty)
  }

  @Test func cancelledInTheInstantOfItsStartTheTaskHearsOfIt() async {
    for _ in 0..<500 {
      let clock = ManualClock()
      let operation = TaskOperation<Void> { try await clock.sleep(for: .seconds(1)) }
      OperationQueue().addOperation(operation)
      operation.cancel()
      await operation.finished()
      #expect(clock.sleepers == 0)
    }
  }

  @Test func aTaskOfAnEarlierPhaseDoesNotTakeThePlaceOfItsOwn() async {
    let clock = ManualClock()
    let operation = TaskOperation<Void> { try await clock.sleep(for: .seconds(1)) }
    OperationQueue().addOperation(operation)
    await clock.waitForSleepers(1)
    // What the thread that began to evaluate the conditions may do late.
    operation.adopt(Task {}, while: .evaluating)
    #expect(clock.sleepers == 1)
    operation.cancel()
    await operation.finished()
  }

  @Test func aTaskThatComesTooLateIsCancelled() async {
    let held = HeldOperation()
    OperationQueue().addOperation(held)
    await held.begun.opened()
    held.cancel()
    let task = Task {}
    held.adopt(task, while: .executing)
    #expect(task.isCancelled)
    held.gate.open()
  }

  @Test func cancellingTheTaskCancelsTheOperation() async {
    let isCancelled = Journal<Bool>()
    let body = TaskOperation<Void> {
      unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
      isCancelled.write(Task.isCancelled)
    }
    OperationQueue().addOperation(body)
    await body.finished()
    #expect(body.isCancelled && isCancelled.entries == [true] && body.errors.isEmpty)
  }

  @Test func throwingACancellationErrorCancelsTheOperation() async {
    let operation = TaskOperation<Int> { throw CancellationError() }
    OperationQueue().addOperation(operation)
    await #expect(throws: CancellationError.self) { try await operation.value }
    #expect(operation.isCancelled && operation.errors.isEmpty)
  }

  @Test func cancelledBeforeTheStartItNeverRuns() async {
    let operation = TaskOperation { Issue.record("ran") }
    operation.cancel()
    OperationQueue().addOperation(operation)
    await operation.finished()
  }

  @Test func finishedFromOutsideItCancelsTheTask() async throws {
    let begun = Gate()
    let ended = Gate()
    let clock = ManualClock()
    let operation = TaskOperation<Int> {
      begun.open()
      defer { ended.open() }
      try await clock.sleep(for: .seconds(1))
      return 1
    }
    OperationQueue().addOperation(operation)
    await begun.opened()
    operation.finish(returning: 2)
    #expect(try await operation.value == 2)
    await ended.opened()
    #expect(!operation.isCancelled)
  }

  @Test func theClosureIsReleased() async {
    let live = LiveCount()
    let operation = {
      let token = LiveCount.Token(live)
      return TaskOperation { withExtendedLifetime(token) { 1 } }
    }()
    OperationQueue().addOperation(operation)
    await operation.finished()
    await live.none()
  }

  @Test func theTaskHasThePriorityAskedFor() async throws {
    let operation = TaskOperation(priority: .low) { Task.currentPriority }
    #expect(try await OperationQueue().run(operation) == .low)
  }
}
