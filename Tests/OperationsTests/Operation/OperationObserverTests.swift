import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct OperationObserverTests {
  private func observer(_ journal: Journal<String>, _ name: String = "") -> OperationObserver {
    OperationObserver(
      didStart: { journal.write("\(name)start \($0.isExecuting)") },
      didCancel: { journal.write("\(name)cancel \($0.isCancelled)") },
      didFinish: { journal.write("\(name)finish \($0.isFinished)") }
    )
  }

  @Test func theyHearOfStartAndFinishInTheOrderTheyWereAdded() async {
    let journal = Journal<String>()
    let operation = AsyncBlockOperation { operation in
      journal.write("execute")
      operation.finish()
    }
    operation.addObserver(observer(journal, "a "))
    operation.addObserver(observer(journal, "b "))
    await start(operation)
    #expect(journal.entries == ["a start true", "b start true", "execute", "a finish true", "b finish true"])
  }

  @Test func theyAreNotifiedOfTheFinishBeforeADependentIsReady() async {
    let (operation, dependent) = (AsyncOperation(), AsyncOperation())
    operation ==> dependent
    let readiness = Journal<Bool>()
    operation.addObserver(OperationObserver(didFinish: { _ in readiness.write(dependent.isReady) }))
    await start(operation)
    #expect(readiness.entries == [false] && dependent.isReady)
  }

  @Test(arguments: [false, true])
  func theyHearOfACancellationOnce(whileExecuting: Bool) async {
    let (journal, operation) = (Journal<String>(), HeldOperation())
    operation.addObserver(observer(journal))
    let queue = OperationQueue.suspended()
    queue.addOperation(operation)
    if whileExecuting {
      queue.isSuspended = false
      await operation.begun.opened()
    }
    operation.cancel()
    operation.cancel()
    #expect(journal.entries.last == "cancel true")
    operation.gate.open()
    queue.isSuspended = false
    await operation.finished()
    #expect(journal.entries == (whileExecuting ? ["start true"] : []) + ["cancel true", "finish true"])
  }

  @Test func oneThatFinishesTheOperationKeepsItFromExecutingAndTheNextFromHearing() async {
    let journal = Journal<String>()
    let operation = NoteOperation("executed", journal)
    operation.addObserver(OperationObserver(didStart: { $0.finish() }))
    operation.addObserver(observer(journal))
    await start(operation)
    #expect(journal.entries == ["finish true"])
  }

  @Test func aLateOneHearsOfTheFinishAtOnce() async {
    let (journal, operation) = (Journal<String>(), AsyncOperation())
    operation.cancel()
    await start(operation)
    operation.addObserver(observer(journal))
    #expect(journal.entries == ["finish true"])
  }

  @Test func oneThatIsAddedDuringTheEndHearsOfItOnce() async {
    for _ in 0..<300 {
      let (journal, operation) = (Journal<String>(), HeldOperation())
      OperationQueue().addOperation(operation)
      await operation.begun.opened()
      await onThreads(3) { thread in
        if thread == 0 { operation.gate.open() }
        operation.addObserver(OperationObserver(didFinish: { _ in journal.write("finish") }))
      }
      await journal.reaches(3)
      await operation.finished()
      #expect(journal.entries.count == 3)
    }
  }

  @Test func theSubclassHearsBeforeTheObserversAndTheyBeforeTheDependents() async {
    final class Subclass: AsyncOperation, @unchecked Sendable {
      let journal: Journal<String>
      init(_ journal: Journal<String>) { self.journal = journal }
      override func didFinish() { journal.write("subclass") }
    }
    for _ in 0..<100 {
      let journal = Journal<String>()
      let operation = Subclass(journal)
      operation.addObserver(OperationObserver(didFinish: { _ in journal.write("observer") }))
      let dependent = NoteOperation("dependent", journal)
      operation ==> dependent
      OperationQueue().addOperations([operation, dependent])
      await dependent.finished()
      #expect(journal.entries == ["subclass", "observer", "dependent"])
    }
  }

  @Test func finishedReturnsAfterTheObserversHaveHeard() async {
    for _ in 0..<100 {
      let (journal, operation) = (Journal<String>(), AsyncOperation())
      operation.addObserver(observer(journal))
      OperationQueue().addOperation(operation)
      await operation.finished()
      #expect(journal.entries.last == "finish true")
    }
  }
}
