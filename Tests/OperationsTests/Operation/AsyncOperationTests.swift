import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct AsyncOperationTests {
  /// Counts what it is told.
  private final class Probe: AsyncOperation, @unchecked Sendable {
    let journal = Journal<String>()
    let body: @Sendable (Probe) -> Void

    init(_ body: @escaping @Sendable (Probe) -> Void = { $0.finish() }) { self.body = body }

    override func execute() {
      journal.write("execute")
      body(self)
    }
    override func didCancel() { journal.write("didCancel") }
    override func didFinish() { journal.write("didFinish \(isFinished)") }
  }

  @Test func statesFollowEachOther() async {
    let operation = HeldOperation()
    #expect(operation.state == .pending && !operation.isExecuting && !operation.isFinished)
    #expect(operation.isAsynchronous)
    OperationQueue().addOperation(operation)
    await operation.begun.opened()
    #expect(operation.state == .executing && operation.isExecuting && !operation.isFinished)
    operation.gate.open()
    await operation.finished()
    #expect(operation.state == .finished && !operation.isExecuting && operation.isFinished)
    #expect(operation.isSuccessful)
  }

  @Test func theDefaultExecuteFinishes() async throws {
    try await OperationQueue().run(AsyncOperation())
  }

  @Test func startByHandWorksWithoutAQueue() async {
    let operation = Probe()
    await start(operation)
    #expect(operation.isFinished)
    #expect(operation.journal.entries == ["execute", "didFinish true"])
  }

  @Test func startingAFinishedOperationDoesNothing() async {
    let operation = Probe()
    await start(operation)
    await start(operation)
    #expect(operation.journal.entries == ["execute", "didFinish true"])
  }

  @Test func cancelledBeforeStartNeverExecutes() async {
    let operation = Probe()
    operation.cancel()
    #expect(operation.isCancelled && operation.state == .pending && operation.isReady)
    await start(operation)
    #expect(operation.journal.entries == ["didFinish true"])
    #expect(operation.isFinished && operation.isCancelled && !operation.isSuccessful)
  }

  @Test func cancelledInAQueueNeverExecutes() async {
    let queue = OperationQueue.suspended()
    let operation = Probe()
    queue.addOperation(operation)
    operation.cancel()
    queue.isSuspended = false
    await operation.finished()
    #expect(operation.journal.entries == ["didFinish true"])
  }

  @Test func cancelledWhileExecutingStaysExecutingUntilItFinishes() async {
    let held = Gate()
    let begun = Gate()
    let operation = Probe { probe in
      begun.open()
      held.whenOpen { probe.finish() }
    }
    OperationQueue().addOperation(operation)
    await begun.opened()
    operation.cancel()
    operation.cancel()
    #expect(operation.isCancelled && operation.isExecuting && !operation.isFinished)
    held.open()
    await operation.finished()
    #expect(operation.journal.entries == ["execute", "didCancel", "didFinish true"])
    #expect(operation.isFinished && !operation.isSuccessful && operation.errors.isEmpty)
  }

  @Test func cancellingAFinishedOperationChangesNothing() async {
    let operation = Probe()
    await start(operation)
    operation.cancel(with: TestError("late"))
    #expect(!operation.isCancelled && operation.errors.isEmpty && operation.isSuccessful)
  }

  @Test func cancellingWithAnErrorRecordsIt() async {
    let operation = Probe()
    operation.cancel(with: TestError("reason"))
    await start(operation)
    #expect(operation.errors as? [TestError] == [TestError("reason")])
    #expect(operation.isCancelled)
  }

  @Test func didCancelMayFinish() async {
    final class Stoppable: AsyncOperation, @unchecked Sendable {
      let begun = Gate()
      override func execute() { begun.open() }
      override func didCancel() { finish() }
    }
    let operation = Stoppable()
    OperationQueue().addOperation(operation)
    await operation.begun.opened()
    operation.cancel()
    await operation.finished()
    #expect(operation.isFinished && operation.isCancelled)
  }

  @Test func theFirstFinishCounts() async {
    let operation = Probe { probe in
      probe.finish(withErrors: [TestError("first"), TestError("second")])
      probe.finish(with: TestError("late"))
      probe.finish()
    }
    await start(operation)
    #expect(operation.errors as? [TestError] == [TestError("first"), TestError("second")])
    #expect(operation.journal.entries == ["execute", "didFinish true"])
  }

  @Test func finishFromManyThreadsCountsOnce() async {
    for _ in 0..<200 {
      let operation = Probe { _ in }
      let queue = OperationQueue()
      let observed = Journal<Int>()
      operation.addObserver(OperationObserver(didFinish: { observed.write($0.errors.count) }))
      queue.addOperation(operation)
      await operation.journal.reaches(1)
      await onThreads(4) { _ in operation.finish(with: TestError("one")) }
      await operation.finished()
      #expect(operation.errors.count == 1)
      #expect(observed.entries == [1])
    }
  }

  @Test func finishFromAnotherThreadWhileStartStillRuns() async {
    let finished = DispatchSemaphore(value: 0)
    let operation = Probe { probe in
      DispatchQueue.global().async {
        probe.finish()
        finished.signal()
      }
      // `start()` cannot return before the finish is over.
      finished.wait()
    }
    OperationQueue().addOperation(operation)
    await operation.finished()
    #expect(operation.journal.entries == ["execute", "didFinish true"])
  }

  @Test func finishBeforeTheStartIsHonouredThere() async {
    let operation = Probe()
    operation.finish(with: TestError("early"))
    operation.finish(with: TestError("later"))
    #expect(operation.state == .pending && !operation.isFinished)
    await start(operation)
    #expect(operation.journal.entries == ["didFinish true"])
    #expect(operation.errors as? [TestError] == [TestError("early")])
  }

  @Test func errorsAreCompleteBeforeFoundationSeesTheEnd() async {
    for _ in 0..<200 {
      let operation = AsyncBlockOperation { $0.finish(withErrors: [TestError("a"), TestError("b")]) }
      let seen = Journal<Int>()
      // A plain dependent is woken by Foundation itself, at the earliest moment there is.
      let dependent = BlockOperation { seen.write(operation.errors.count) }
      operation ==> dependent
      let queue = OperationQueue()
      queue.addOperation(dependent)
      queue.addOperation(operation)
      await seen.reaches(1)
      #expect(seen.entries == [2])
    }
  }

  @Test func theQueueOfOneRunsOneAfterTheOther() async {
    let queue = OperationQueue.limited(to: 1)
    let first = HeldOperation()
    let second = HeldOperation()
    queue.addOperation(first)
    queue.addOperation(second)
    await first.begun.opened()
    #expect(!second.isExecuting && queue.operationCount == 2)
    first.gate.open()
    await second.begun.opened()
    #expect(first.isFinished)
    second.gate.open()
    await queue.finished()
    #expect(queue.operationCount == 0)
  }

  @Test func theQueuesProgressCountsIt() async {
    // One at a time: two that run at once make Foundation on Linux change its Progress from two threads without a lock.
    let queue = OperationQueue.limited(to: 1)
    queue.progress.totalUnitCount = 2
    let held = HeldOperation()
    queue.addOperation(held)
    queue.addOperation(AsyncBlockOperation { $0.finish() })
    await held.begun.opened()
    held.gate.open()
    await queue.finished()
    #expect(queue.progress.completedUnitCount == 2)
  }

  @Test func theNameMayBeUsedFromAnyThread() async {
    let operation = AsyncOperation().named("none yet")
    await onThreads(4) { thread in
      for round in 0..<2000 {
        operation.name = "a name that is too long to be stored inline, \(thread) \(round)"
        _ = operation.name?.count
      }
    }
    #expect(operation.name?.hasPrefix("a name") == true)
    operation.name = nil
    #expect(operation.name == nil)
  }

  @Test func tenThousandAtOnceAllFinish() async {
    let queue = OperationQueue()
    let executed = Journal<Void>()
    queue.addOperations(
      (0..<10_000).map { _ in
        AsyncBlockOperation {
          executed.write(())
          $0.finish()
        }
      }
    )
    await queue.finished()
    #expect(executed.count == 10_000)
    #expect(queue.operationCount == 0)
  }
}
