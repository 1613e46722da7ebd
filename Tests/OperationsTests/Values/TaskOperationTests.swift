import Foundation
import OperationsTestSupport
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
    #expect(try await queue.run(TaskOperation(priority: .low) { Task.currentPriority }) == .low)
  }

  @Test func whatItThrowsIsTheError() async throws {
    let operation = TaskOperation<Int> { throw TestError("lost") }
    await #expect(throws: TestError("lost")) { try await OperationQueue().run(operation) }
    #expect(!operation.isCancelled)
  }

  @Test func aThousandWaitOnTwoThreads() async throws {
    let (gate, begun) = (Gate(), Journal<Int>())
    let operations = (0..<1000).map { index in
      TaskOperation {
        begun.write(index)
        await gate.opened()
        return index
      }
    }
    let queue = OperationQueue.limited(to: 1000)
    let threads = DispatchQueue(label: "two threads", attributes: .concurrent)
    unsafe queue.underlyingQueue = threads
    async let values = queue.run(graphEndingIn: collect(operations))
    await begun.reaches(1000)
    // All of them wait, and yet a thread can be had.
    #expect(try await OperationQueue().run(ResultOperation { true }))
    gate.open()
    #expect(try await values == Array(0..<1000))
  }

  @Test func cancellingCancelsTheTaskAndFinishesWhenItHasReturned() async {
    let (begun, end, isCancelled) = (Gate(), Gate(), Journal<Bool>())
    let operation = TaskOperation {
      begun.open()
      await end.opened()
      isCancelled.write(Task.isCancelled)
    }
    await OperationQueue().add(operation, until: begun)
    operation.cancel()
    #expect(operation.isExecuting)
    end.open()
    await #expect(throws: CancellationError.self) { try await operation.completed() }
    #expect(isCancelled.entries == [true] && operation.errors.isEmpty)
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
    let (operation, task) = (HeldOperation(), Task {})
    await start(operation)
    operation.cancel()
    operation.adopt(task, while: .executing)
    #expect(task.isCancelled)
    operation.finish()
  }

  @Test func cancellingTheTaskCancelsTheOperation() async {
    let operation = TaskOperation {
      unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
      #expect(Task.isCancelled)
    }
    await OperationQueue().run(settling: [operation])
    #expect(operation.isCancelled && operation.errors.isEmpty)
  }

  @Test func throwingACancellationErrorCancelsTheOperation() async {
    let operation = TaskOperation<Int> { throw CancellationError() }
    OperationQueue().addOperation(operation)
    await #expect(throws: CancellationError.self) { try await operation.value }
    #expect(operation.isCancelled && operation.errors.isEmpty)
  }

  @Test func finishedFromOutsideItCancelsTheTask() async throws {
    let (begun, ended, clock) = (Gate(), Gate(), ManualClock())
    let operation = TaskOperation<Int> {
      begun.open()
      defer { ended.open() }
      try await clock.sleep(for: .seconds(1))
      return 1
    }
    await OperationQueue().add(operation, until: begun)
    operation.finish(returning: 2)
    #expect(try await operation.value == 2)
    await ended.opened()
    #expect(!operation.isCancelled)
  }
}
