import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

enum Request {
  @TaskLocal static var id = "none"
  @TaskLocal static var token: LiveCount.Token?
}

/// Operations that get their value from a task, a transformation, a closure or a caller.
@Suite(.timeLimit(.minutes(5)))
struct TaskOperationTests {
  private final class Answer: TaskOperation<Int>, @unchecked Sendable { override func run() async throws -> Int { 42 } }

  private final class Squaring: TransformOperation<Int, Int>, @unchecked Sendable {
    override func transform(_ input: Int) async throws -> Int { input * input }
  }

  private let queue = OperationQueue()

  @Test func aClosureOrASubclassDoesTheWork() async throws {
    #expect(try await queue.run(TaskOperation { await Task { "value" }.value }) == "value")
    #expect(try await queue.run(Answer()) == 42)
    #expect(try await queue.run(TaskOperation(priority: .low) { Task.currentPriority }) == .low)
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
    let lane = OperationQueue.limited(to: 1000)
    let threads = DispatchQueue(label: "two threads", attributes: .concurrent)
    unsafe lane.underlyingQueue = threads
    async let values = lane.run(collect(operations))
    await begun.reaches(1000)
    // All of them wait, and yet a thread can be had.
    #expect(try await queue.run(ResultOperation { true }))
    gate.open()
    #expect(try await values == Array(0..<1000))
  }

  @Test func aTaskOfAnEarlierPhaseDoesNotTakeThePlaceOfItsOwn() async {
    let clock = ManualClock()
    let operation = TaskOperation<Void> { try await clock.sleep(for: .seconds(1)) }
    queue.addOperation(operation)
    await clock.waitForSleepers(1)
    // What the thread that began to evaluate the conditions may do late.
    #expect(!operation.adopt(Task {}, while: .suspended(.conditions)))
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

  @Test func cancellingTheTaskOrThrowingACancellationErrorCancelsTheOperation() async {
    let cancelling = TaskOperation<Void> {
      unsafe withUnsafeCurrentTask { task in unsafe task?.cancel() }
      #expect(Task.isCancelled)
    }
    for operation in [cancelling, TaskOperation<Void> { throw CancellationError() }] {
      await #expect(throws: CancellationError.self) { try await queue.run(operation) }
      #expect(operation.isCancelled && operation.errors.isEmpty)
    }
  }

  @Test func finishedFromOutside_cancelsItsTaskWhenItsDependentsMayStart() async throws {
    let (clock, dependentHasRun) = (ManualClock(), DispatchSemaphore(value: 0))
    let waits = Journal<DispatchTimeoutResult>()
    let operation = TaskOperation<Int> {
      try await withTaskCancellationHandler {
        try await clock.sleep(for: .seconds(1))
      } onCancel: {
        waits.write(dependentHasRun.wait(timeout: .now() + 10))
      }
      return 1
    }
    let dependent = ResultOperation { _ = dependentHasRun.signal() }
    queue.addOperations([operation, operation ==> dependent])
    await clock.waitForSleepers()
    operation.finish(returning: 2)
    #expect(try await operation.value == 2)
    await poll { clock.sleepers == 0 }
    #expect(waits.entries == [.success] && !operation.isCancelled)
  }

  @Test func theFirstFinishCounts_andItsValueMayBeAwaitedByManyBeforeAndAfter() async throws {
    let operation = HeldResult()
    #expect(operation.result == nil)
    let tasks = (0..<10).map { _ in immediately { try await operation.value } }
    await queue.add(operation, until: operation.begun)
    #expect(operation.result == nil)
    #expect(operation.finish(returning: 1) && !operation.finish(returning: 2))
    #expect(try operation.result?.get() == 1)
    for task in tasks { #expect(try await task.value == 1) }
    #expect(try await operation.value == 1)
  }

  // MARK: TransformOperation

  @Test func aSynchronousTransformRunsOnTheQueuesThread_andTheOthersInATask() async throws {
    let synchronous = TransformOperation { [queue] (_: Int) in OperationQueue.current === queue }
    let asynchronous = TransformOperation { (input: Int) in
      await Task.yield()
      return unsafe withUnsafeCurrentTask { task in unsafe task != nil } ? input + 1 : 0
    }
    let subclass = Squaring()
    (synchronous.input, asynchronous.input, subclass.input) = (1, 1, 7)
    #expect(try await queue.run(synchronous))
    #expect(try await queue.run(asynchronous) == 2)
    #expect(try await queue.run(subclass) == 49)
  }

  @Test func thrownError_isTheOnlyError() async {
    let synchronous = TransformOperation { (_: Int) -> Int in throw TestError("lost") }
    let asynchronous = TransformOperation { (_: Int) async throws -> Int in throw TestError("lost") }
    (synchronous.input, asynchronous.input) = (1, 1)
    for operation in [TaskOperation<Int> { throw TestError("lost") }, synchronous, asynchronous] {
      await #expect(throws: TestError("lost")) { try await queue.run(operation) }
      #expect(!operation.isCancelled)
    }
  }

  // MARK: Task-local values

  @Test func aTaskOperationSeesOnlyTheValuesOfTheTaskThatCreatesIt() async throws {
    #expect(try await onThread { TaskContext() == nil }.get())
    let (task, synchronous) = Request.$id.withValue("creator") {
      let task = TaskOperation {
        async let child = Request.id
        return await Request.id + " " + child + " " + Task { Request.id }.value
      }
      return (task, ResultOperation { Request.id })
    }
    Request.$id.withValue("starter") {
      task.start()
      #expect(Request.id == "starter")
    }
    #expect(try await task.value == "creator creator creator")
    #expect(try await queue.run(synchronous) == "none" && Request.id == "none")
  }

  /// Operations whose closures call `note`.
  private static let noting: [(String, @Sendable (_ note: @escaping @Sendable () -> Void) -> AsyncOperation)] = [
    ("attempt", { note in RetryOperation(attempts: 1) { _ in note() } }),
    ("second attempt", { note in RetryOperation(attempts: 2) { if $0 == 2 { note() } else { throw TestError("1") } } }),
    ("make", { note in RetryOperation(attempts: 1) { _ in makeNoting(note) } }),
    ("retryWhen", { note in RetryOperation(attempts: 2, retryWhen: { _, _ in noting(note, .retry) }, { _ in }) }),
    ("iteration", { note in RepeatOperation { $0 <= 2 ? makeNoting(note) : nil } }),
    ("map", { note in ResultOperation { 1 }.map { _ in note() } }),
    ("asynchronous map", { note in ResultOperation { 1 }.map { _ async in note() } }),
    ("flatMap", { note in ResultOperation { 1 }.flatMap { _ in makeNoting(note) } }),
    (
      "condition",
      { note in
        let operation = AsyncOperation()
        operation.addCondition(.any(OperationCondition(name: "any") { _ in note() }))
        return operation
      }
    ),
  ]

  private static func makeNoting(_ note: () -> Void) -> AsyncOperation { noting(note, AsyncOperation()) }

  private static func noting<Value>(_ note: () -> Void, _ value: Value) -> Value {
    note()
    return value
  }

  @Test(arguments: noting.map(\.0))
  func theClosuresSeeTheValuesOfTheTaskThatCreatesTheOperation(_ kind: String) async throws {
    let (seen, creator) = (Journal<String>(), Work())
    let make = try #require(Self.noting.first { $0.0 == kind }?.1)
    let operation = Request.$id.withValue("creator") {
      $currentWork.withValue(creator) {
        make { seen.write(currentWork === creator ? "a part of the creator" : Request.id) }
      }
    }
    try await Request.$id.withValue("runner") { try await queue.run(operation) }
    #expect(Set(seen.entries) == ["creator"])
  }

  @Test(arguments: noting.map(\.0)) func theClosuresSeeTheCancellationOfTheOperation(_ kind: String) async throws {
    let (seen, own) = (Journal<Bool>(), Locked<AsyncOperation?>(nil))
    let make = try #require(Self.noting.first { $0.0 == kind }?.1)
    let operation = make {
      own.withLock { $0 }?.cancel()
      seen.write(Task.isCancelled)
    }
    own.withLock { $0 = operation }
    _ = try? await queue.run(operation)
    #expect(seen.entries == [true])
    own.withLock { $0 = nil }
  }

  @Test(arguments: [false, true])
  func aMainOperationAndAnAdapter_seeTheValuesOfATaskThatStartsThem(byHand: Bool) async {
    let (seen, target) = (Journal<String>(), AsyncOperation())
    let operations: [AsyncOperation] = Request.$id.withValue("creator") {
      let main = MainOperation { main in
        seen.write(Request.id)
        main.finish()
      }
      return [main, AdapterOperation(from: main, to: target) { _, _ in seen.write(Request.id) }, target]
    }
    await Request.$id.withValue("starter") {
      for operation in operations {
        if byHand { operation.start() } else { queue.addOperation(operation) }
        await operation.finished()
      }
    }
    #expect(seen.entries == (byHand ? ["starter", "starter"] : ["none", "none"]))
  }

  @Test func theWorkIsOnNoActorAndNotInTheTaskOfTheCreator() async throws {
    let operation = await MainActor.run { TaskOperation { DispatchQueue.isMainCurrent } }
    #expect(try await queue.run(operation) == false)
    let creator = Task { TaskOperation { Task.isCancelled } }
    let born = await creator.value
    creator.cancel()
    #expect(try await queue.run(born) == false)
  }

  @Test func thePriorityIsThatOfTheThreadThatStartsIt() async throws {
    let make = { @Sendable in TaskOperation { Task.currentPriority } }
    let outside = try await queue.run(try await onThread { make() }.get())
    let inside = try await queue.run(await Task(priority: .background) { make() }.value)
    #expect(inside == outside)
  }

  // MARK: Memory

  /// Operations that hold the token both in their closure and in their context, which a retry uses again.
  private func operations(_ live: LiveCount) -> [ResultOperation<Int>] {
    let token = LiveCount.Token(live)
    return Request.$token.withValue(token) {
      let retry = RetryOperation(attempts: 2) { number in
        if number == 1 { throw TestError("again") }
        return ResultOperation { withExtendedLifetime(token) { 1 } }
      }
      return [TaskOperation { withExtendedLifetime(token) { 1 } }, retry]
    }
  }

  @Test func neverRunOrEnded_keepsNothing() async {
    let live = LiveCount()
    for _ in 0..<1000 { _ = operations(live) }
    _ = GroupOperation(operations(live))
    await live.none()
    let (cancelled, finished, run) = (operations(live), operations(live), operations(live))
    for operation in cancelled { operation.cancel() }
    for operation in finished { operation.finish(returning: 2) }
    await queue.run(settling: cancelled + finished + run)
    await live.none()
    withExtendedLifetime((cancelled, finished, run)) {}
  }
}
