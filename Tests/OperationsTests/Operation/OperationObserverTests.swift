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

  @Test func observers_areNotifiedInTheOrderTheyWereAdded() async {
    let journal = Journal<String>()
    let operation = NoteOperation("execute", journal)
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

  @Test func addedDuringTheEnd_isNotifiedOnce() async {
    for _ in 0..<300 {
      let (journal, operation) = (Journal<String>(), HeldOperation())
      await OperationQueue().add(operation, until: operation.begun)
      await onThreads(3) { thread in
        if thread == 0 { operation.gate.open() }
        operation.addObserver(OperationObserver(didFinish: { _ in journal.write("finish") }))
      }
      await journal.reaches(3)
      await operation.finished()
      #expect(journal.entries.count == 3)
    }
  }
}
