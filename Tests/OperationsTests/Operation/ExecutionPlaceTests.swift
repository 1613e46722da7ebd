import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Where an operation executes does not depend on how it was prepared.
@Suite(.timeLimit(.minutes(5)))
struct ExecutionPlaceTests {
  private static let met = OperationCondition(name: "met") { _ in await Task.yield() }

  private let home = Shelf(on: SerialScheduler(name: "home"))
  private var scheduler: SerialScheduler { home.scheduler }

  /// An operation with a condition, which calls `body` when it executes.
  private func conditional(
    by condition: OperationCondition = met,
    _ body: @escaping @Sendable () -> Void
  ) -> AsyncOperation {
    let operation = ResultOperation(body)
    operation.addCondition(condition)
    return operation
  }

  /// An operation with a condition, which succeeds at the second attempt.
  private func retry(_ body: @escaping @Sendable () -> Void = {}) -> RetryOperation<Int> {
    let operation = RetryOperation<Int>(attempts: 2, backoff: .constant(.milliseconds(1))) { attempt in
      body()
      if attempt == 1 { throw TestError("busy") }
      return ResultOperation { attempt }
    }
    operation.addCondition(Self.met)
    return operation
  }

  /// The conditions that code on the scheduler can rely on.
  private static func expectCurrent(_ home: Shelf, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(SerialScheduler.current === home.scheduler && home.scheduler.isCurrent, sourceLocation: sourceLocation)
    #expect((try? home.scheduler.wait(timeout: .seconds(30)) { 1 }) == 1, sourceLocation: sourceLocation)
    home.items.append(1)
  }

  @Test func itKeepsTheSchedulerUntilItHasFinished() async throws {
    let journal = Journal<String>()
    for index in 0..<50 {
      let operation = AsyncBlockOperation { operation in
        journal.write("begins")
        DispatchQueue(label: "elsewhere").async {
          journal.write("ends")
          operation.finish()
        }
      }
      if index.isMultiple(of: 2) { operation.addCondition(Self.met) }
      scheduler.queue.addOperation(operation)
      scheduler.schedule { journal.write("event") }
    }
    await scheduler.queue.finished()
    #expect(journal.entries == Array(repeating: ["begins", "ends", "event"], count: 50).flatMap(\.self))
    #expect(scheduler.queue.maxConcurrentOperationCount == 1)
  }

  /// A condition that is met when the test opens a gate.
  private static func condition(_ gate: Gate, evaluated: Gate) -> OperationCondition {
    OperationCondition(name: "gate") { _ in
      evaluated.open()
      await gate.opened()
    }
  }

  @Test func suspendingTheSchedulerMeanwhileDelaysOnlyWhatComesNext() async throws {
    let (gate, evaluated) = (Gate(), Gate())
    let journal = Journal<String>()
    let operation = conditional(by: Self.condition(gate, evaluated: evaluated)) { [home] in
      Self.expectCurrent(home)
      journal.write("operation")
    }
    await scheduler.queue.add(operation, until: evaluated)
    scheduler.schedule { journal.write("event") }
    scheduler.isSuspended = true
    await operation.finished(opening: gate)
    #expect(journal.entries == ["operation"])
    scheduler.isSuspended = false
    #expect(await journal.all(2) == ["operation", "event"])
  }

  /// Its queue then continues with the next operation.
  @Test func itExecutesThoughItsSchedulerHasBeenReleased() async {
    let (live, hasScheduler) = (LiveCount(), Journal<Bool>())
    let note: @Sendable () -> Void = { hasScheduler.write(SerialScheduler.current != nil) }
    for _ in 0..<50 {
      let (gate, evaluated) = (Gate(), Gate())
      let operation = conditional(by: Self.condition(gate, evaluated: evaluated), note)
      do {
        let scheduler = SerialScheduler(name: "released")
        await scheduler.queue.add(operation, until: evaluated)
        scheduler.queue.addOperation(live.counted(note))
      }
      await operation.finished(opening: gate)
      #expect(operation.errors.isEmpty)
    }
    await live.none()
    #expect(hasScheduler.entries == Array(repeating: false, count: 100))
  }

  @Test func itsEndLeavesNothingOfTheScheduler() async throws {
    weak var scheduler: SerialScheduler?
    weak var queue: OperationQueue?
    let operation = retry()
    do {
      let own = SerialScheduler(name: "own")
      (scheduler, queue) = (own, own.queue)
      #expect(try await own.queue.run(operation) == 2)
      await own.queue.finished()
    }
    // Foundation's thread releases the queue, and the scheduler's last event the scheduler, a moment later.
    await poll { scheduler == nil && queue == nil }
    withExtendedLifetime(operation) {}
  }

  @Test func retriesAreMadeOnTheScheduler() async throws {
    for pause in [Duration.zero, .milliseconds(1)] {
      let operation = RetryOperation<Int>(attempts: 4, backoff: .constant(pause)) { [home] attempt in
        Self.expectCurrent(home)
        if attempt == 3 { throw TestError("not made") }
        return ResultOperation { if attempt < 4 { throw TestError("busy") } else { attempt } }
      }
      if pause > .zero { operation.addCondition(Self.met) }
      #expect(try await scheduler.queue.run(operation) == 4)
    }
  }

  @Test func memberWithAConditionExecutesInTheQueueOfItsGroup() async throws {
    let queues = Journal<OperationQueue?>()
    let members = (0..<6).map { index in
      let member = ResultOperation { queues.write(OperationQueue.current) }
      if !index.isMultiple(of: 2) { member.addCondition(Self.met) }
      if index > 3 { member.qualityOfService = .utility }
      return member
    }
    try await OperationQueue().run(GroupOperation(members, maxConcurrentOperationCount: 1))
    #expect(queues.entries.count == 6 && queues.entries[0] != nil)
    #expect(Set(queues.entries.map { $0.map(ObjectIdentifier.init) }).count == 1)
  }

  @Test(arguments: [false, true]) func inTheMainQueueItExecutesOnMain(startedInEvent: Bool) async throws {
    let operation = conditional {
      #expect(SerialScheduler.current === SerialScheduler.main && SerialScheduler.main.isCurrent)
      #expect((try? SerialScheduler.main.wait { 1 }) == 1)
    }
    if startedInEvent {
      try await SerialScheduler.main.run { operation.start() }
      try await operation.completed()
    } else {
      try await OperationQueue.main.run(operation)
    }
  }

  @Test func inAQueueWithAnUnderlyingQueueItExecutesThere() async throws {
    let (key, underlying) = (DispatchSpecificKey<Int>(), DispatchQueue(label: "underlying"))
    underlying.setSpecific(key: key, value: 1)
    let queue = OperationQueue.limited(to: 1)
    unsafe queue.underlyingQueue = underlying
    let operation = retry { #expect(DispatchQueue.getSpecific(key: key) == 1) }
    #expect(try await queue.run(operation) == 2)
  }

  // MARK: MainOperation

  @Test func mainOperation_executesOnTheMainActorUntilItIsFinished() async throws {
    let shown = Gate()
    let dialog = MainOperation { _ in
      // `Thread.isMainThread` is false here on Linux, where another thread may serve the main queue.
      dispatchPrecondition(condition: .onQueue(.main))
      shown.open()
    }
    await OperationQueue().add(dialog, until: shown)
    #expect(dialog.isExecuting)
    dialog.finish()
    try await dialog.completed()
    // Without a closure or an override it finishes.
    try await OperationQueue().run(MainOperation())
  }

  @Test(arguments: [false, true])
  @MainActor func mainOperationEndedWhileTheMainActorIsBusy_onlyReleasesItsClosure(byCancelling: Bool) async {
    let live = LiveCount()
    let operation = {
      MainOperation { [token = LiveCount.Token(live)] _ in
        Issue.record("executed")
        withExtendedLifetime(token) {}
      }
    }()
    // The main actor is busy here until the next suspension.
    operation.start()
    if byCancelling { operation.cancel() } else { operation.finish() }
    #expect(operation.isExecuting == byCancelling)
    await operation.finished()
    await Task { @MainActor in }.value
    await live.none()
    #expect(operation.isCancelled == byCancelling)
  }
}
