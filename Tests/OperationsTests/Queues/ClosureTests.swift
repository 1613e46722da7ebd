import Foundation
import Operations
import OperationsTestSupport
import Testing

private enum Request {
  @TaskLocal static var id = "none"
}

/// Closures as operations.
@Suite(.timeLimit(.minutes(5)))
struct ClosureTests {
  private let queue = OperationQueue()

  private static func synchronous() -> Bool { OperationQueue.current != nil }

  @Sendable private static func asynchronous() async -> Bool { isOnQueue }

  private static var isOnQueue: Bool { OperationQueue.current != nil }

  // MARK: Which one the compiler picks

  @Test func aClosureWithoutAwaitRunsOnAThreadOfTheQueue() async throws {
    let expression = try await queue.run { Self.isOnQueue }
    #expect(expression)
    #expect(try await queue.run(Self.synchronous))
    let lines = try await queue.run {
      let isOnQueue = Self.isOnQueue
      return isOnQueue
    }
    #expect(lines)
    // So does a closure that throws.
    let throwing = try await queue.run {
      if !Self.isOnQueue { throw TestError("on a thread of the tasks") }
      return Self.isOnQueue
    }
    #expect(throwing)
    #expect(try await queue.addTask { Self.isOnQueue }.value)
    #expect(try await queue.addTask("named") { Self.isOnQueue }.value)
  }

  @Test func aClosureWithAwaitRunsInATask() async throws {
    let awaiting = try await queue.run { await Self.asynchronous() }
    #expect(!awaiting)
    #expect(try await queue.run(Self.asynchronous) == false)
    let lines = try await queue.run {
      await Task.yield()
      return Self.isOnQueue
    }
    #expect(!lines)
    let task: TaskOperation = queue.addTask {
      await Task.yield()
      return Self.isOnQueue
    }
    #expect(try await task.value == false)
  }

  // MARK: Outcomes

  @Test func theErrorIsThrownAndIsThatOfTheOperation() async {
    await #expect(throws: TestError("a")) { try await queue.run { throw TestError("a") } }
    await #expect(throws: TestError("b")) {
      try await queue.run {
        await Task.yield()
        throw TestError("b")
      }
    }
    let operation = queue.addTask("upload") { () -> Int in throw TestError("c") }
    await operation.finished()
    #expect(operation.errors as? [TestError] == [TestError("c")] && operation.name == "upload")
  }

  @Test func closuresAndOperationsShareTheQueuesSlots() async throws {
    let (lane, held) = (OperationQueue.limited(to: 1), HeldOperation())
    lane.addOperation(held)
    let journal = Journal<String>()
    let first = lane.addTask { journal.write("first") }
    let second = lane.addTask {
      await Task.yield()
      journal.write("second")
    }
    second ==> lane.addTask { journal.write("third") }
    await held.begun.opened()
    #expect(journal.entries.isEmpty && first.state == .pending)
    held.gate.open()
    await lane.finished()
    #expect(journal.entries == ["first", "second", "third"])
  }

  // MARK: Cancelling

  @Test func cancellingTheTaskCancelsAnAsynchronousClosure() async {
    let clock = ManualClock()
    let task = Task { try await queue.run { try await clock.sleep(for: .seconds(1)) } }
    await clock.waitForSleepers(1)
    task.cancel()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(clock.sleepers == 0)
  }

  @Test func aSynchronousClosureSeesThatItsTaskIsCancelled() async {
    let (begun, gate) = (Gate(), Gate())
    let seen = Journal<Bool>()
    let task = Task {
      try await queue.run {
        seen.write(Task.isCancelled)
        begun.open()
        gate.pass()
        seen.write(Task.isCancelled)
        try Task.checkCancellation()
      }
    }
    await begun.opened()
    task.cancel()
    gate.open()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(seen.entries == [false, true])
  }

  @Test func cancelledBeforeItsTurnAClosureNeverRuns() async {
    let suspended = OperationQueue.suspended()
    suspended.addTask { Issue.record("ran") }
    suspended.addTask {
      await Task.yield()
      Issue.record("ran")
    }
    suspended.cancelAllOperations()
    suspended.isSuspended = false
    await suspended.finished()
  }

  // MARK: Context

  @Test func closuresSeeTheTaskLocalValuesOfTheirCaller() async throws {
    let (synchronous, asynchronous) = try await Request.$id.withValue("caller") {
      (
        try await queue.run { Request.id },
        try await queue.run {
          await Task.yield()
          return Request.id
        }
      )
    }
    #expect(synchronous == "caller" && asynchronous == "caller")
    let added = Request.$id.withValue("adder") { queue.addTask { Request.id } }
    #expect(try await added.value == "adder")
  }

  @Test func onTheMainQueueASynchronousClosureIsOnTheMainActor() async throws {
    try await OperationQueue.main.run { MainActor.assumeIsolated {} }
  }

  @Test func onASchedulersQueueASynchronousClosureIsOnTheScheduler() async throws {
    let scheduler = SerialScheduler(name: "closures")
    let notes = Notes(on: scheduler)
    let isCurrent = try await scheduler.queue.run {
      notes.assumeIsolated { _ in SerialScheduler.current === scheduler && scheduler.isCurrent }
    }
    #expect(isCurrent)
  }
}
