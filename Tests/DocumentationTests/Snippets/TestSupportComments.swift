import Foundation
import Operations
import OperationsTestSupport
import Testing

/// The code in the comments of Sources/OperationsTestSupport, and on the page of the module.
@Suite(.timeLimit(.minutes(5)))
struct TestSupportComments {
  private let queue = OperationQueue()

  @Test func aGate() async {
    let (begun, gate) = (Gate(), Gate())
    let operation = AsyncBlockOperation { operation in
      begun.open()
      gate.whenOpen { operation.finish() }
    }
    queue.addOperation(operation)
    await begun.opened()
    #expect(operation.isExecuting)  // for as long as the test wants
    gate.open()
    await operation.finished()
  }

  @Test func aJournal() async {
    let operation = AsyncOperation()

    let journal = Journal<String>()
    operation.addObserver(OperationObserver(didFinish: { _ in journal.write("finished") }))
    queue.addOperation(operation)
    await journal.reaches(1)
    #expect(journal.entries == ["finished"])
  }

  @Test func aClock() async {
    let operation = AsyncBlockOperation { _ in }

    let clock = ManualClock()
    operation.clock = clock
    operation.timeout = .seconds(30)
    queue.addOperation(operation)
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(30))
    #expect(operation.isFinished)
  }

  @Test func aClockOfASchedulers() async {
    let refreshed = Journal<Int>()
    @Sendable func refresh() { refreshed.write(1) }

    let clock = ManualClock()
    let scheduler = SerialScheduler(name: "under test", clock: clock)
    scheduler.schedule(after: .seconds(60)) { refresh() }
    await clock.advance(by: .seconds(60), draining: scheduler)

    #expect(refreshed.count == 1)
  }
}
