import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The threads that the page “Threading and cancellation” names, where no other test checks them.
@Suite(.timeLimit(.minutes(5)))
struct ThreadingTests {
  private let queue = OperationQueue()
  private let places = Journal<Place>()

  // MARK: Operations

  @Test func callsAreOnTheThreadThatStartsCancelsOrFinishes() async {
    let operation = ObservedOperation()
    let starting = await onThread { operation.start() }
    let cancelling = await onThread {
      operation.cancel()
      operation.cancel()
    }
    #expect(operation.isExecuting && operation.isCancelled)
    let finishing = await onThread { operation.finish(returning: 1) }
    #expect(
      operation.names == [
        "observer: didStart", "execute", "observer: didCancel", "didCancel",
        "didFinish", "observer: didFinish", "onFinish",
      ]
    )
    let expected = [starting, starting, cancelling, cancelling, finishing, finishing, finishing]
    #expect(operation.calls.entries.map(\.place) == expected)
    let late = await onThread { [places] in
      operation.addObserver(OperationObserver(didFinish: { _ in places.write(.here) }))
      operation.onFinish { _ in places.write(.here) }
    }
    #expect(places.entries == [late, late])
  }

  @Test func cancelledInASuspendedQueue_finishesOnItsThreadWhenResumed() async {
    queue.isSuspended = true
    let operation = ObservedOperation()
    queue.addOperation(operation)
    operation.cancel()
    #expect(operation.names == ["observer: didCancel"] && !operation.isFinished)
    queue.isSuspended = false
    await operation.finished()
    #expect(operation.calls.count == 4 && operation.calls.entries.dropFirst().allSatisfy { $0.place.isOn(queue) })
  }

  @Test func theCompletionBlockIsCalledOnAThreadOfFoundation() async {
    let operation = ObservedOperation()
    operation.completionBlock = { [places] in places.write(.here) }
    queue.addOperation(operation)
    await operation.begun.opened()
    await onThread { operation.finish(returning: 1) }
    await places.reaches(1)
    #expect(places.entries.map(\.queue) == [nil] && operation.completionBlock == nil)
  }

  @Test func conditionsAndTheEndAfterAnUnmetOneAreInATask() async {
    let operation = ObservedOperation()
    operation.addCondition(
      OperationCondition(name: "unmet") { [places] _ in
        places.write(.here)
        throw CocoaError(.userCancelled)
      }
    )
    queue.addOperation(operation)
    await operation.finished()
    #expect(operation.names == ["didFinish", "observer: didFinish", "onFinish"])
    let all = places.entries + operation.calls.entries.map(\.place)
    #expect(all.count == 4 && all.allSatisfy { $0.isInTask && $0.queue == nil && !$0.isOnMain })
  }

  @Test func aTimeoutCancelsAndFinishesOnTheThreadOfTheClock() async {
    let (operation, clock) = (ObservedOperation(), ManualClock())
    operation.clock = clock
    operation.timeout = .seconds(1)
    // The timer starts before `execute()`, so a sleeper says too little.
    queue.addOperation(operation)
    await operation.begun.opened()
    let thread = await onThread { clock.advance(by: .seconds(1)) }
    #expect(operation.isFinished)
    let names = ["observer: didCancel", "didCancel", "didFinish", "observer: didFinish", "onFinish"]
    #expect(operation.names.dropFirst(2) == names[...])
    #expect(operation.calls.entries.dropFirst(2).allSatisfy { $0.place == thread })
  }

  // MARK: Values

  @Test func closuresOfOperationsAreOnTheThreadOfTheQueue() async throws {
    let source = ResultOperation { 1 }
    let next = source.flatMap { [places] value in places.here(ResultOperation { value + 1 }) }
    let (plain, target) = (BlockOperation {}, AsyncOperation())
    let adapter = AdapterOperation(from: plain, to: target) { [places] _, _ in places.write(.here) }
    #expect(try await queue.run(next) == 2)
    queue.addOperations([plain, adapter, target])
    await target.finished()
    try await queue.run(
      RepeatOperation { [places] iteration in
        if iteration == 1 { places.write(.here) }
        return iteration < 3 ? AsyncOperation() : nil
      }
    )
    #expect(places.entries.map(\.queue) == Array(repeating: ObjectIdentifier(queue), count: 3))
  }

  @Test func attemptsAreMadeWhereTheOneBeforeEndedOrOnASystemThreadAfterADelay() async throws {
    let clock = ManualClock()
    let retry = RetryOperation(
      attempts: 3,
      backoff: Backoff { [places] attempt in places.here(attempt == 1 ? .zero : .seconds(1)) },
      retryIf: { [places] _, _ in places.here(true) },
      { [places] attempt in
        places.here(ResultOperation { if attempt < 3 { throw CocoaError(.fileNoSuchFile) } else { attempt } })
      }
    )
    retry.clock = clock
    queue.addOperation(retry)
    await clock.waitForSleepers()
    // The first attempt, its end and the second attempt, and the end of that.
    let entries = places.entries
    #expect(entries.count == 6 && entries[0].queue == ObjectIdentifier(queue))
    #expect(entries[1...3].allSatisfy { $0 == entries[1] } && entries[4] == entries[5])
    clock.advance(by: .seconds(1))
    #expect(try await retry.value == 3)
    #expect(places.entries[6].queue == nil)
  }

  // MARK: Groups and keys

  @Test func membersRunOnThreadsOfTheGroupNotOfItsQueue() async throws {
    for queue in [queue, .main] {
      let member = AsyncBlockOperation { [places] member in
        places.write(.here)
        member.finish()
      }
      try await queue.run(GroupOperation([member]))
    }
    #expect(places.count == 2)
    #expect(places.entries.allSatisfy { !$0.isInTask && $0.queue != ObjectIdentifier(queue) && !$0.isOnMain })
  }

  @Test func memberThatOnlyBeginsATask_callsCodeOnThreadsOfTheGroupOnly() async throws {
    let (first, ended) = (AsyncBlockOperation { _ in }, DispatchSemaphore(value: 0))
    let (observed, consumer, retry) = (
      TaskOperation {}, TransformOperation { (_: Int) async in },
      RetryOperation(attempts: 1) { [places] _ in places.here(TaskOperation {}) }
    )
    observed.addObserver(OperationObserver(didStart: { [places] _ in places.write(.here) }))
    let producer = ResultOperation { 1 }
    producer.pass(to: consumer) { [places] consumer, value in
      places.write(.here)
      consumer.input = value
    }
    [first, producer] ==> [observed, consumer, retry]
    let group = GroupOperation([first, producer, observed, consumer, retry]).started()
    await producer.finished()
    // The thread lives until the end, because another one could get its address.
    async let finishing = onThread {
      first.finish()
      ended.wait()
    }
    group.staysOpen = false
    await group.finished()
    ended.signal()
    let thread = await finishing.thread
    #expect(places.count == 3 && places.entries.allSatisfy { $0.queue != nil && $0.thread != thread })
  }

  @Test func finishingThreadStartsFewOfTheTasksThatWaited() async throws {
    let first = AsyncBlockOperation { _ in }
    let tasks = (0..<200).map { _ in PlacedTask(places) }
    [first] ==> tasks
    let group = GroupOperation([first] + tasks).started()
    let finishing = await onThread { first.finish() }
    group.staysOpen = false
    await group.finished()
    #expect(places.entries.count { $0 == finishing } <= 16)
  }

  @Test(arguments: [ExclusivityPolicy.replace, .latest])
  func aPolicyCancelsOnTheThreadThatRequestsTheKey(_ policy: ExclusivityPolicy) async {
    let (domain, queue, holder, waiter) = (ExclusivityDomain(), queue, Held(), ObservedOperation())
    queue.addOperation(holder.exclusive("key", in: domain))
    await holder.begun.opened()
    queue.addOperation(waiter.exclusive("key", in: domain))
    let newest = AsyncOperation().exclusive("key", policy: policy, in: domain)
    let requesting = await onThread { queue.addOperation(newest) }
    #expect(waiter.names.first == "observer: didCancel" && waiter.calls.entries.first?.place == requesting)
    holder.gate.open()
    await queue.finished()
  }

  @Test func whatIsSharedIsMadeInTheTaskOfTheCaller() async throws {
    let value = try await queue.run(sharing: "key", in: ExclusivityDomain()) { [places] in
      places.here(ResultOperation { 1 })
    }
    #expect(value == 1 && places.entries.map(\.isInTask) == [true])
  }
}

/// Where a piece of code is called.
private struct Place: Sendable, Equatable {
  let thread: ObjectIdentifier
  let isInTask: Bool
  let isOnMain: Bool
  let queue: ObjectIdentifier?

  static var here: Self {
    Self(
      thread: ObjectIdentifier(Thread.current),
      isInTask: unsafe withUnsafeCurrentTask { unsafe $0 != nil },
      isOnMain: SerialScheduler.main.isCurrent,
      queue: OperationQueue.current.map { ObjectIdentifier($0) }
    )
  }

  func isOn(_ queue: OperationQueue) -> Bool { !isInTask && self.queue == ObjectIdentifier(queue) }
}

extension Journal<Place> {
  /// Records where it is called, and returns the value.
  fileprivate func here<Value>(_ value: Value) -> Value {
    write(.here)
    return value
  }
}

/// Records where its quality is read, which is where it starts.
private final class PlacedTask: TaskOperation<Void>, @unchecked Sendable {
  private let places: Journal<Place>

  init(_ places: Journal<Place>) {
    self.places = places
    super.init()
  }

  override var qualityOfService: QualityOfService {
    get { places.here(super.qualityOfService) }
    set { super.qualityOfService = newValue }
  }

  override func run() async {}
}

/// Calls `body` on a new thread, on which no task runs, and returns its place.
@discardableResult
private func onThread(_ body: @escaping @Sendable () -> Void) async -> Place {
  await withCheckedContinuation { continuation in
    Thread.detachNewThread {
      let place = Place.here
      body()
      continuation.resume(returning: place)
    }
  }
}

private struct Call: Sendable {
  let name: String
  let place = Place.here
}

/// Executes until the test finishes it, and records its calls.
private final class ObservedOperation: ResultOperation<Int>, @unchecked Sendable {
  let begun = Gate()
  let calls = Journal<Call>()

  var names: [String] { calls.entries.map(\.name) }

  override init() {
    super.init()
    addObserver(
      OperationObserver(
        didStart: { [calls] _ in calls.write(Call(name: "observer: didStart")) },
        didCancel: { [calls] _ in calls.write(Call(name: "observer: didCancel")) },
        didFinish: { [calls] _ in calls.write(Call(name: "observer: didFinish")) }
      )
    )
    onFinish { [calls] _ in calls.write(Call(name: "onFinish")) }
  }

  override func execute() {
    calls.write(Call(name: "execute"))
    begun.open()
  }

  override func didCancel() { calls.write(Call(name: "didCancel")) }
  override func didFinish() { calls.write(Call(name: "didFinish")) }
}
