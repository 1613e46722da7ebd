import Foundation
import Operations
import OperationsTestSupport
import Testing

private struct Unreachable: Error {}

final class Held: AsyncOperation, @unchecked Sendable {
  let begun = Gate()
  let gate = Gate()

  override func execute() {
    begun.open()
    gate.whenOpen { self.finish() }
  }
}

/// The page TestingOperations, and the comments in Sources/OperationsTestSupport.
@Suite(.timeLimit(.minutes(5)))
struct TestingOperationsSnippets {
  /// Stops when it is cancelled.
  final class Download: AsyncOperation, @unchecked Sendable {
    let begun = Gate()

    override func execute() { begun.open() }

    override func didCancel() { finish() }
  }

  private let queue = OperationQueue()

  @Test func holding() async {
    let next = AsyncOperation()
    let held = Held()
    queue.maxConcurrentOperationCount = 1
    queue.addOperations([held, next])
    await held.begun.opened()
    #expect(held.isExecuting && !next.isExecuting)
    held.gate.open()
    await queue.finished()
  }

  @Test func order() async {
    let journal = Journal<String>()
    func step(_ name: String) -> AsyncOperation { ResultOperation { journal.write(name) } }
    let (load, parse, store) = (step("load"), step("parse"), step("store"))
    load ==> parse ==> store
    // Out of order, so that only the dependencies order them.
    queue.addOperations([store, parse, load])
    await journal.reaches(3)
    #expect(journal.entries == ["load", "parse", "store"])
  }

  @Test func timeouts() async {
    let operation = AsyncBlockOperation { _ in }
    let clock = ManualClock()
    operation.clock = clock
    operation.timeout = .seconds(30)
    queue.addOperation(operation)
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(30))
    #expect(operation.isFinished)
    #expect((operation.errors.first as? OperationError)?.code == .timedOut)
  }

  @Test func runs() async throws {
    let clock = ManualClock()
    let pause = Backoff.constant(.seconds(10))
    let page = RetryOperation(attempts: 3, backoff: pause) { attempt in
      ResultOperation { if attempt < 3 { throw Unreachable() } }
    }
    page.clock = clock
    page.timeout = .seconds(60)
    queue.addOperation(page)
    await clock.run(until: page)
    #expect(page.isSuccessful && clock.now.offset == .seconds(20))
  }

  @Test func cancellationAtATime() async {
    let clock = ManualClock()
    let pause = Backoff.constant(.seconds(10))
    let page = RetryOperation(attempts: 9, backoff: pause) { _ in ResultOperation<Void> { throw Unreachable() } }
    let group = GroupOperation([page])
    group.clock = clock
    queue.addOperation(group)
    Task {
      try await clock.sleep(for: .seconds(15))
      group.cancel()
    }
    await clock.run(until: group)
    #expect(group.isCancelled && clock.now.offset == .seconds(15))
    #expect(page.failedAttempts == 2)
  }

  @Test func cancellation() async {
    let (queue, download) = (queue, Download())
    let run = Task { try await queue.run(download) }
    await download.begun.opened()
    run.cancel()  // cancels the operation
    await #expect(throws: CancellationError.self) { try await run.value }
    #expect(download.isCancelled && download.isFinished)
  }

  // MARK: Comments

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

  @Test func schedulers() async {
    let refreshed = Gate()
    @Sendable func refresh() { refreshed.open() }
    let clock = ManualClock()
    let scheduler = SerialScheduler(name: "under test", clock: clock)
    scheduler.schedule(after: .seconds(60)) { refresh() }
    await clock.advance(by: .seconds(60), draining: scheduler)
    #expect(refreshed.isOpen)
  }
}
