import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The statements of the page “Effects” about operations with values.
@Suite(.timeLimit(.minutes(5)))
struct ValueEffectsTests {
  @TaskLocal private static var isMarked = false

  private let queue = OperationQueue()
  private let places = Journal<Place>()

  private final class Sum: ResultOperation<Int>, @unchecked Sendable {
    let places: Journal<Place>
    var values: [Int] = []

    init(_ places: Journal<Place>) {
      self.places = places
      super.init()
    }

    override func execute() {
      places.write(.here)
      finish(returning: values.reduce(0, +))
    }
  }

  private func expectOnQueue(count: Int) {
    #expect(places.count == count && places.entries.allSatisfy { $0.isOn(queue) })
  }

  @Test func aResultOperationsClosureIsOnTheQueuesThread() async throws {
    try await queue.run(ResultOperation { [places] in places.write(.here) })
    expectOnQueue(count: 1)
  }

  @Test func cancellingDoesNotStopAClosureButItsValueIsNotTheResult() async {
    let (begun, end) = (Gate(), DispatchSemaphore(value: 0))
    let operation = ResultOperation {
      begun.open()
      end.wait()
      return 1
    }
    queue.addOperation(operation)
    await begun.opened()
    operation.cancel()
    #expect(operation.isExecuting)
    end.signal()
    await operation.finished()
    #expect(throws: CancellationError.self) { try operation.result?.get() }
  }

  @Test func aTaskOperationsBodyIsInATaskThatIsCancelledWithIt() async {
    let begun = Gate()
    let operation = TaskOperation { [places] in
      places.write(.here)
      begun.open()
      try await ContinuousClock().sleep(for: .seconds(3600))
    }
    queue.addOperation(operation)
    await begun.opened()
    operation.cancel()
    await operation.finished()
    #expect(places.entries.map(\.isInTask) == [true] && places.entries.map(\.queue) == [nil])
    #expect(operation.isCancelled && operation.errors.isEmpty)
  }

  @Test func itEndsOnlyWhenTheBodyHasReturned() async {
    let (begun, end) = (Gate(), Gate())
    let operation = TaskOperation {
      begun.open()
      await end.opened()
    }
    queue.addOperation(operation)
    await begun.opened()
    operation.cancel()
    #expect(operation.isExecuting)
    end.open()
    await operation.finished()
    #expect(operation.isCancelled)
  }

  @Test func taskLocalValuesAreThoseOfTheTaskThatCreatesTheOperation() async throws {
    let created = Self.$isMarked.withValue(true) {
      (TaskOperation { Self.isMarked }, ResultOperation { Self.isMarked })
    }
    #expect(try await queue.run(created.0))
    #expect(try await !queue.run(created.1))
    let closures = try await Self.$isMarked.withValue(true) {
      (try await queue.run { Self.isMarked }, try await queue.addTask { Self.isMarked }.value)
    }
    #expect(closures == (true, true))
  }

  @Test func aClosureWithoutAwaitIsOnTheQueuesThreadAndOneWithItInATask() async throws {
    try await queue.run { [places] in places.write(.here) }
    try await queue.addTask { [places] in places.write(.here) }.completed()
    #expect(places.count == 2 && places.entries.allSatisfy { $0.queue == ObjectIdentifier(queue) })
    try await queue.run { [places] in
      await Task.yield()
      places.write(.here)
    }
    #expect(places.count == 3 && places.entries[2].queue == nil)
  }

  @Test func aRepeatOperationMakesTheFirstOnTheStartingThread() async throws {
    try await queue.run(
      RepeatOperation { [places] iteration in
        places.write(.here)
        return iteration < 3 ? AsyncOperation() : nil
      }
    )
    #expect(places.count == 3 && places.entries[0].isOn(queue))
  }

  @Test func onFinishOnMainIsOnTheMainActor() async throws {
    let operation = ResultOperation { 1 }
    let called = Gate()
    operation.onFinishOnMain { _ in
      MainActor.preconditionIsolated()
      called.open()
    }
    _ = try await queue.run(operation)
    await called.opened()
  }

  @Test func aTransformIsOnTheQueuesThreadAndAnAsynchronousOneInATask() async throws {
    let one = ResultOperation { 1 }
    let synchronous = one.map { [places] value in
      places.write(.here)
      return value
    }
    let asynchronous = synchronous.map { [places] value async throws in
      places.write(.here)
      return value
    }
    #expect(try await queue.run(graphEndingIn: asynchronous) == 1)
    #expect(places.entries.map(\.isInTask) == [false, true] && places.entries[0].isOn(queue))
  }

  @Test func whatIsPassedIsHandedOverInOrderOnTheThreadOfTheConsumer() async throws {
    let sum = Sum(places)
    for number in 1...3 {
      ResultOperation { number }.pass(to: sum) { [places] sum, value in
        places.write(.here)
        sum.values.append(value)
      }
    }
    #expect(try await queue.run(graphEndingIn: sum) == 6)
    #expect(sum.values == [1, 2, 3])
    expectOnQueue(count: 4)
    #expect(Set(places.entries.map(\.thread)).count == 1)
  }

  @Test func afterConditionsToo() async throws {
    let sum = Sum(places)
    sum.addCondition(OperationCondition(name: "met") { _ in })
    ResultOperation { 1 }.pass(to: sum) { [places] sum, value in
      places.write(.here)
      sum.values.append(value)
    }
    _ = try await queue.run(graphEndingIn: sum)
    #expect(places.count == 2 && places.entries[0] == places.entries[1])
  }

  @Test func withoutAValueTheConsumerIsCancelled() async {
    let sum = Sum(places)
    ResultOperation<Int> { throw CocoaError(.fileNoSuchFile) }.pass(to: sum) { sum, value in sum.values = [value] }
    await #expect(throws: OperationError(.inputUnavailable, "")) { try await queue.run(graphEndingIn: sum) }
    #expect(sum.isCancelled && places.count == 0)
  }

  @Test func theEndIsToldOnTheFinishingThread() async {
    let operation = ResultOperation<Int>()
    let begun = Gate()
    let held = HeldResult(begun)
    held.onFinish { [places] _ in places.write(.here) }
    queue.addOperation(held)
    await begun.opened()
    let thread = await onThread { held.finish(returning: 1) }
    let second = await onThread { [places] in held.onFinish { _ in places.write(.here) } }
    #expect(places.entries == [thread, second])
    operation.finish(returning: 1)
  }

  private final class HeldResult: ResultOperation<Int>, @unchecked Sendable {
    private let begun: Gate

    init(_ begun: Gate) {
      self.begun = begun
      super.init()
    }

    override func execute() { begun.open() }
  }

  @Test func whatAValueLeadsToIsMadeOnTheQueuesThread() async throws {
    let next = ResultOperation { 1 }.flatMap { [places] value in
      places.write(.here)
      return ResultOperation { value + 1 }
    }
    #expect(try await queue.run(graphEndingIn: next) == 2)
    expectOnQueue(count: 1)
  }

  @Test func anAdapterTransfersOnItsOwnThreadAndItsErrorCancelsTheTarget() async {
    let (source, target) = (BlockOperation {}, AsyncOperation())
    let adapter = AdapterOperation(from: source, to: target) { [places] _, _ in
      places.write(.here)
      throw CocoaError(.fileNoSuchFile)
    }
    queue.addOperations([source, adapter, target])
    await target.finished()
    expectOnQueue(count: 1)
    #expect(target.isCancelled && (target.errors.first as? OperationError)?.code == .inputUnavailable)
  }

  // MARK: Retries

  @Test func attemptsAreMadeWhereTheOneBeforeEndedOrAfterAPauseOnAThreadOfTheSystems() async throws {
    let (decisions, pauses) = (Journal<Place>(), Journal<Place>())
    let clock = ManualClock()
    let retry = RetryOperation(
      attempts: 3,
      backoff: Backoff { attempt in
        pauses.write(.here)
        return attempt == 1 ? .zero : .seconds(1)
      },
      retryIf: { _, _ in
        decisions.write(.here)
        return true
      },
      { [places] attempt in
        places.write(.here)
        return ResultOperation {
          if attempt < 3 { throw CocoaError(.fileNoSuchFile) }
          return attempt
        }
      }
    )
    retry.clock = clock
    queue.addOperation(retry)
    await clock.waitForSleepers()
    #expect(places.count == 2 && places.entries[0].isOn(queue) && places.entries[1] == decisions.entries[0])
    #expect(pauses.entries == decisions.entries)
    clock.advance(by: .seconds(1))
    #expect(try await retry.value == 3)
    #expect(places.entries[2].queue == nil && !places.entries[2].isInTask)
    #expect(retry.attemptErrors.count == 2 && retry.errors.isEmpty)
  }

  @Test func cancellingEndsAPause() async {
    let clock = ManualClock()
    let retry = RetryOperation(attempts: 2, backoff: .constant(.seconds(1))) { _ in
      ResultOperation<Int> { throw CocoaError(.fileNoSuchFile) }
    }
    retry.clock = clock
    queue.addOperation(retry)
    await clock.waitForSleepers()
    retry.cancel()
    #expect(retry.isFinished && retry.isCancelled && retry.errors.isEmpty)
  }
}
