import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The statements of the page “Effects” about operations.
@Suite(.timeLimit(.minutes(5)))
struct OperationEffectsTests {
  @Test func executionIsOnTheThreadThatStarts() async {
    let operation = ObservedOperation()
    let thread = await onThread { operation.start() }
    #expect(operation.calls.entries.map(\.place) == [thread, thread])
    #expect(operation.names == ["observer: didStart", "execute"])
    operation.finish()
  }

  @Test func executionInAQueueIsOnItsThread() async {
    let queue = OperationQueue()
    let operation = ObservedOperation()
    queue.addOperation(operation)
    await operation.begun.opened()
    #expect(operation.calls.entries.allSatisfy { $0.place.isOn(queue) })
    operation.finish()
    await operation.finished()
  }

  @Test func executionInTheMainQueueIsOnTheMainThread() async {
    let operation = ObservedOperation()
    OperationQueue.main.addOperation(operation)
    await operation.begun.opened()
    #expect(operation.calls.entries.allSatisfy { $0.place.isOnMain })
    operation.finish()
    await operation.finished()
  }

  @Test func theEndIsOnTheFinishingThread() async {
    let operation = ObservedOperation()
    let calls = operation.calls
    operation.addObserver(
      OperationObserver(didFinish: { operation in
        calls.write(ObservedOperation.Call(name: "second: \(operation.isFinished)", place: .here))
      })
    )
    let next = AsyncOperation()
    next.addObserver(
      OperationObserver(didStart: { _ in calls.write(ObservedOperation.Call(name: "next", place: .here)) })
    )
    operation ==> next
    let queue = OperationQueue()
    queue.addOperations([operation, next])
    await operation.begun.opened()
    let thread = await onThread { operation.finish() }
    await next.finished()
    #expect(
      operation.names.dropFirst(2) == ["didFinish", "observer: didFinish", "second: true", "next"]
    )
    #expect(operation.calls.entries.dropFirst(2).prefix(3).allSatisfy { $0.place == thread })
  }

  @Test func cancellingIsOnTheCancellingThreadAndDoesNotFinish() async {
    let operation = ObservedOperation()
    OperationQueue().addOperation(operation)
    await operation.begun.opened()
    let thread = await onThread {
      operation.cancel()
      operation.cancel()
    }
    #expect(operation.calls.entries.dropFirst(2).map(\.place) == [thread, thread])
    #expect(operation.names.dropFirst(2) == ["observer: didCancel", "didCancel"])
    #expect(operation.isExecuting && operation.isCancelled && !operation.isFinished)
    operation.finish()
    await operation.finished()
    #expect(operation.errors.isEmpty && !operation.isSuccessful)
  }

  @Test func whatWasCancelledBeforeIsFinishedByItsQueue() async {
    let queue = OperationQueue()
    queue.isSuspended = true
    let operation = ObservedOperation()
    queue.addOperation(operation)
    operation.cancel()
    #expect(operation.names == ["observer: didCancel"] && !operation.isFinished)
    queue.isSuspended = false
    await operation.finished()
    #expect(operation.names == ["observer: didCancel", "didFinish", "observer: didFinish"])
    #expect(operation.places(of: "didFinish").allSatisfy { $0.isOn(queue) })
  }

  @Test func aLateObserverIsCalledAtOnce() async throws {
    let operation = AsyncOperation()
    try await OperationQueue().run(operation)
    let places = Journal<Place>()
    let thread = await onThread {
      operation.addObserver(OperationObserver(didFinish: { _ in places.write(.here) }))
    }
    #expect(places.entries == [thread])
  }

  @Test func theCompletionBlockIsCalledOnAnotherThread() async {
    let operation = ObservedOperation()
    let places = Journal<Place>()
    operation.completionBlock = { places.write(.here) }
    OperationQueue().addOperation(operation)
    await operation.begun.opened()
    let thread = await onThread { operation.finish() }
    await places.reaches(1)
    #expect(places.entries.map { $0.queue } == [nil])
    #expect(operation.completionBlock == nil && operation.places(of: "didFinish") == [thread])
  }

  // MARK: Conditions and time

  @Test func conditionsAreEvaluatedInATask() async throws {
    let queue = OperationQueue()
    let operation = ObservedOperation()
    let places = Journal<Place>()
    operation.addCondition(OperationCondition(name: "first") { _ in places.write(.here) })
    operation.addCondition(OperationCondition(name: "second") { _ in places.write(.here) })
    queue.addOperation(operation)
    await operation.begun.opened()
    #expect(places.entries.allSatisfy { $0.isInTask && $0.queue == nil && !$0.isOnMain })
    #expect(operation.places(of: "execute").allSatisfy { !$0.isInTask })
    operation.finish()
    await operation.finished()
  }

  @Test func afterItsConditionsAnOperationOfTheMainQueueIsOnTheMainThread() async throws {
    let operation = ObservedOperation()
    operation.addCondition(OperationCondition(name: "met") { _ in })
    OperationQueue.main.addOperation(operation)
    await operation.begun.opened()
    #expect(operation.places(of: "execute").allSatisfy { $0.isOnMain && !$0.isInTask })
    operation.finish()
    await operation.finished()
  }

  @Test func anUnmetConditionEndsItInTheTaskAndDoesNotCancelIt() async {
    let operation = ObservedOperation()
    operation.addCondition(OperationCondition(name: "unmet") { _ in throw CocoaError(.userCancelled) })
    OperationQueue().addOperation(operation)
    await operation.finished()
    #expect(operation.names == ["didFinish", "observer: didFinish"])
    #expect(operation.places(of: "didFinish").allSatisfy { $0.isInTask })
    #expect(!operation.isCancelled && operation.errors.count == 1)
    #expect((operation.errors.first as? OperationError)?.code == .conditionFailed)
    #expect((operation.errors.first as? OperationError)?.underlyingErrors.first is CocoaError)
  }

  @Test func cancellingEndsAnOperationInTheMiddleOfItsConditions() async {
    let operation = ObservedOperation()
    let (asked, end) = (Gate(), Gate())
    operation.addCondition(
      OperationCondition(name: "long") { _ in
        asked.open()
        await end.opened()
      }
    )
    OperationQueue().addOperation(operation)
    await asked.opened()
    let thread = await onThread { operation.cancel() }
    #expect(operation.isFinished && operation.places(of: "didFinish") == [thread])
    end.open()
  }

  @Test func aTimeoutCancelsAndFinishesOnTheThreadOfTheClock() async {
    let clock = ManualClock()
    let operation = ObservedOperation()
    operation.clock = clock
    operation.timeout = .seconds(1)
    OperationQueue().addOperation(operation)
    await clock.waitForSleepers()
    let thread = await onThread { clock.advance(by: .seconds(1)) }
    #expect(operation.isFinished && operation.isCancelled)
    #expect(operation.names.dropFirst(2) == ["observer: didCancel", "didCancel", "didFinish", "observer: didFinish"])
    #expect(operation.calls.entries.dropFirst(2).allSatisfy { $0.place == thread })
    #expect((operation.errors.first as? OperationError)?.code == .timedOut)
  }

  // MARK: Kinds of operations

  @Test func theBlockOfACancelledOperationIsNotCalled() async {
    let operation = AsyncBlockOperation { _ in Issue.record("It was cancelled before.") }
    operation.cancel()
    OperationQueue().addOperation(operation)
    await operation.finished()
    #expect(operation.errors.isEmpty && operation.isCancelled)
  }

  @Test func aDelayEndsOnTheCancellingThread() async {
    let operation = DelayOperation(.seconds(3600))
    let (begun, places) = (Gate(), Journal<Place>())
    operation.addObserver(OperationObserver(didStart: { _ in begun.open() }, didFinish: { _ in places.write(.here) }))
    OperationQueue().addOperation(operation)
    await begun.opened()
    let thread = await onThread { operation.cancel() }
    await operation.finished()
    #expect(operation.errors.isEmpty && places.entries == [thread])
  }

  private final class Dialog: MainOperation, @unchecked Sendable {
    let places = Journal<Place>()

    override func executeOnMain() {
      places.write(.here)
      finish()
    }
  }

  @Test func aMainOperationIsOnTheMainActorInAnyQueue() async throws {
    let dialog = Dialog()
    try await OperationQueue().run(dialog)
    #expect(dialog.places.entries.map(\.isOnMain) == [true])
  }

  // MARK: Verbs

  @Test func cancellingTheTaskOfRunCancelsTheOperationAndWaitsForItsEnd() async {
    let operation = ObservedOperation()
    let task = Task { try await OperationQueue().run(operation) }
    await operation.begun.opened()
    task.cancel()
    #expect(operation.isCancelled && !operation.isFinished)
    operation.finish()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(operation.isFinished)
  }

  @Test func cancellingTheTaskOfFinishedChangesNothing() async {
    let operation = ObservedOperation()
    OperationQueue().addOperation(operation)
    await operation.begun.opened()
    let task = Task {
      await operation.finished()
      return operation.isFinished
    }
    task.cancel()
    #expect(!operation.isCancelled)
    operation.finish()
    #expect(await task.value)
  }
}
