import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

@Suite(.timeLimit(.minutes(5)))
struct AsyncOperationTests {
  private final class Probe: AsyncOperation, @unchecked Sendable {
    let journal = Journal<String>()
    let body: @Sendable (Probe) -> Void

    init(_ body: @escaping @Sendable (Probe) -> Void) { self.body = body }

    override func execute() {
      journal.write("execute")
      body(self)
    }
    override func didCancel() { journal.write("didCancel \(isFinished)") }
    override func didFinish() { journal.write("didFinish \(isFinished)") }
  }

  @Test func startedByHand_theFirstFinishCountsAndNoLateStartOrCancellation() async {
    let operation = Probe { probe in
      probe.finish(withErrors: [TestError("first"), TestError("second")])
      probe.finish(with: TestError("late"))
      probe.finish()
    }
    await start(operation)
    await start(operation)
    operation.cancel(with: TestError("late"))
    #expect(operation.errors as? [TestError] == [TestError("first"), TestError("second")] && !operation.isCancelled)
    #expect(operation.journal.entries == ["execute", "didFinish true"])
  }

  @Test func errorsAreCompleteBeforeFoundationSeesTheEnd() async {
    for _ in 0..<200 {
      let failing = AsyncBlockOperation { $0.finish(withErrors: [TestError("a"), TestError("b")]) }
      let (value, seen) = (ResultOperation { 2 }, Journal<Int?>())
      // Foundation itself starts a plain dependent, at the earliest moment there is.
      let dependents: [Operation] = [
        failing ==> BlockOperation { seen.write(failing.errors.count) },
        value ==> BlockOperation { seen.write(try? value.result?.get()) },
      ]
      OperationQueue().addOperations(dependents + [failing, value])
      #expect(await seen.all(2) == [2, 2])
    }
  }

  @Test func inASerialQueue_theNextOneStartsAfterItsFinish() async {
    let (queue, first, second) = (OperationQueue.limited(to: 1), HeldOperation(), HeldOperation())
    queue.addOperations([first, second])
    await first.begun.opened()
    #expect(first.state == .executing && first.isExecuting && !first.isFinished && first.isAsynchronous)
    #expect(second.state == .pending && second.isReady && !second.isExecuting && !second.isFinished)
    first.gate.open()
    await second.begun.opened()
    #expect(first.state == .finished && first.isFinished && !first.isExecuting && first.isSuccessful)
    await queue.drained(opening: [second.gate])
  }

  @Test(arguments: [false, true])
  func theQueuesProgressCountsIt_unlessItIsCancelledWhileItExecutes(isCancelled: Bool) async {
    // One at a time: two that run at once make Foundation on Linux change its Progress from two threads without a lock.
    let (queue, held) = (OperationQueue.limited(to: 1), HeldOperation())
    queue.progress.totalUnitCount = 2
    await queue.begin(held)
    if isCancelled { held.cancel() }
    await held.finished(opening: held.gate)
    queue.addOperations([AsyncOperation()])
    await queue.finished()
    #expect(queue.progress.completedUnitCount == (isCancelled ? 1 : 2))
  }

  @Test func finishedOnAnotherThreadWhileItsStartReturns_itEndsOnce() async {
    let (queue, ends) = (OperationQueue(), Journal<Bool>())
    let rounds = isThorough ? 100 : 2
    for _ in 0..<rounds {
      for _ in 0..<1000 {
        let operation = AsyncBlockOperation { operation in DispatchQueue.global().async { operation.finish() } }
        operation.addObserver(didFinish: { ends.write($0.isFinished) })
        queue.addOperation(operation)
      }
      await queue.finished()
    }
    // The queue is empty before the last observers are notified.
    #expect(await ends.all(rounds * 1000) == Array(repeating: true, count: rounds * 1000))
  }

  @Test func theNameAndTheInputMayBeUsedFromAnyThread() async {
    let operation = TransformOperation { (input: [Int]) in input }.named("none yet")
    await onThreads(4) { thread in
      for round in 0..<2000 {
        operation.name = "a name that is too long to be stored inline, \(thread) \(round)"
        operation.input = [thread]
        _ = (operation.name?.count, operation.input?.count)
      }
    }
    #expect(operation.name?.hasPrefix("a name") == true && operation.input?.count == 1)
  }

  // MARK: Observers

  @Test func observersOnMain_areCalledOnTheMainActorInOrder() async {
    let (events, operation) = (Journal<String>(), HeldOperation())
    operation.addObserver(
      .onMain(
        didStart: { _ in events.write("start") },
        didCancel: { _ in events.write("cancel") },
        didFinish: { events.write("finish \($0.isFinished)") }
      )
    )
    await OperationQueue().begin(operation)
    operation.cancel()
    operation.gate.open()
    #expect(await events.all(3) == ["start", "cancel", "finish true"])
  }

  private func observer(_ journal: Journal<String>, _ name: String = "") -> OperationObserver {
    OperationObserver(
      didStart: { journal.write("\(name)start \($0.isExecuting)") },
      didCancel: { journal.write("\(name)cancel \($0.isCancelled)") },
      didFinish: { journal.write("\(name)finish \($0.isFinished)") }
    )
  }

  @Test func observers_areNotifiedInTheOrderTheyWereAdded_andBeforeADependentIsReady() async {
    let (journal, dependent) = (Journal<String>(), AsyncOperation())
    let operation = NoteOperation("execute", journal)
    operation ==> dependent
    operation.addObserver(observer(journal, "a "))
    operation.addObserver(observer(journal, "b "))
    operation.addObserver(didFinish: { _ in journal.write("ready \(dependent.isReady)") })
    await start(operation)
    let entries = ["a start true", "b start true", "execute", "a finish true", "b finish true", "ready false"]
    #expect(journal.entries == entries && dependent.isReady)
  }

  /// An operation without observers ends on another path.
  @Test(arguments: [false, true], [(false, false), (false, true), (true, false), (true, true)])
  func cancelledTwice_hooksAndObserversAreCalledOnce(
    finishesWhenCancelled: Bool,
    _ situation: (whileExecuting: Bool, isObserved: Bool)
  ) async {
    let (whileExecuting, isObserved) = situation
    let (queue, operation) = (OperationQueue.suspended(), Probe { _ in })
    let journal = operation.journal
    operation.finishesWhenCancelled = finishesWhenCancelled
    if isObserved { operation.addObserver(observer(journal)) }
    queue.addOperation(operation)
    if whileExecuting {
      queue.isSuspended = false
      await journal.reaches(isObserved ? 2 : 1)
    }
    operation.cancel()
    operation.cancel()
    #expect(operation.isCancelled && operation.isFinished == (whileExecuting && finishesWhenCancelled))
    #expect(operation.isExecuting == (whileExecuting && !finishesWhenCancelled))
    #expect(whileExecuting || (operation.state == .pending && operation.isReady))
    #expect(journal.entries.contains("cancel true") == isObserved)
    if whileExecuting { operation.finish() }
    queue.isSuspended = false
    await operation.finished()
    operation.addObserver(observer(journal, "late "))
    let calls = whileExecuting ? ["start true", "execute", "cancel true", "didCancel false"] : ["cancel true"]
    let entries = calls + ["didFinish true", "finish true"]
    let observed = ["start true", "cancel true", "finish true"]
    #expect(journal.entries == entries.filter { isObserved || !observed.contains($0) } + ["late finish true"])
    #expect(operation.isFinished && operation.isCancelled && !operation.isSuccessful && operation.errors.isEmpty)
    #expect(operation.finishesWhenCancelled == finishesWhenCancelled)
  }

  @Test func addedDuringTheEnd_isNotifiedOnce() async {
    for _ in 0..<300 {
      let (journal, operation) = (Journal<String>(), HeldOperation())
      await OperationQueue().begin(operation)
      await onThreads(3) { thread in
        if thread == 0 { operation.gate.open() }
        operation.addObserver(didFinish: { _ in journal.write("finish") })
      }
      await journal.reaches(3)
      await operation.finished()
      #expect(journal.entries.count == 3)
    }
  }
}
