import Foundation
import Operations
import OperationsTestSupport
import Testing

private enum Request {
  @TaskLocal static var id = "none"
}

/// The closures that `run` and `addTask` make operations of.
@Suite(.timeLimit(.minutes(5)))
struct ClosureTests {
  private let queue = OperationQueue()

  private static var isOnQueue: Bool { OperationQueue.current != nil }

  private static func synchronous() -> Bool { isOnQueue }

  @Sendable private static func asynchronous() async -> Bool { isOnQueue }

  // MARK: The overload that the compiler selects

  @Test func aClosureWithoutAwait_runsOnAThreadOfTheQueue() async throws {
    let expression = try await queue.run { Self.isOnQueue }
    let statements = try await queue.run {
      if !Self.isOnQueue { throw TestError("on a thread of the tasks") }
      return Self.isOnQueue
    }
    #expect(expression && statements)
    #expect(try await queue.run(Self.synchronous))
    #expect(try await queue.addTask { Self.isOnQueue }.value)
    #expect(try await queue.addTask("named") { Self.isOnQueue }.value)
  }

  @Test func aClosureWithAwait_runsInATask() async throws {
    let expression = try await queue.run { await Self.asynchronous() }
    let statements = try await queue.run {
      await Task.yield()
      return Self.isOnQueue
    }
    #expect(!expression && !statements)
    #expect(try await queue.run(Self.asynchronous) == false)
    let task: TaskOperation = queue.addTask {
      await Task.yield()
      return Self.isOnQueue
    }
    #expect(try await task.value == false)
  }

  // MARK: Outcomes

  @Test func theErrorOfTheClosure_isThrownAndIsTheOperations() async {
    await #expect(throws: TestError("a")) { try await queue.run { throw TestError("a") } }
    let operation = queue.addTask("upload") { () -> Int in throw TestError("b") }
    await operation.finished()
    #expect(operation.errors as? [TestError] == [TestError("b")] && operation.name == "upload")
  }

  @Test func aSynchronousClosure_seesThatItsTaskIsCancelled() async {
    let (gate, seen) = (Gate(), Journal<Bool>())
    let task = Task {
      try await queue.run {
        seen.write(Task.isCancelled)
        gate.pass()
        seen.write(Task.isCancelled)
        try Task.checkCancellation()
      }
    }
    await seen.reaches(1)
    task.cancel()
    gate.open()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(seen.entries == [false, true])
  }

  // MARK: Context

  @Test func aSynchronousClosure_seesTheTaskLocalValuesOfItsCaller() async throws {
    let run = try await Request.$id.withValue("caller") { try await queue.run { Request.id } }
    #expect(run == "caller")
    let added = Request.$id.withValue("adder") { queue.addTask { Request.id } }
    #expect(try await added.value == "adder")
  }

  @Test func aSynchronousClosureOfTheMainQueue_isOnTheMainActor() async throws {
    try await OperationQueue.main.run { MainActor.assumeIsolated {} }
  }

  @Test func aSynchronousClosureOfASchedulersQueue_isOnTheScheduler() async throws {
    let scheduler = SerialScheduler(name: "closures")
    let notes = Notes(on: scheduler)
    let isCurrent = try await scheduler.queue.run {
      notes.assumeIsolated { _ in SerialScheduler.current === scheduler && scheduler.isCurrent }
    }
    #expect(isCurrent)
  }
}
