import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RunTests {
  private let queue = OperationQueue()

  @Test func itReturnsTheValue() async throws {
    let value = try await queue.run(ResultOperation { 6 * 7 })
    #expect(value == 42)
  }

  @Test func itThrowsTheOneErrorAsItself() async {
    await #expect(throws: TestError("no")) { try await queue.run(ResultOperation<Int> { throw TestError("no") }) }
    await #expect(throws: TestError("no")) {
      try await queue.run(AsyncBlockOperation { $0.finish(with: TestError("no")) })
    }
  }

  @Test func itThrowsSeveralErrorsTogether() async throws {
    let operation = AsyncBlockOperation { $0.finish(withErrors: [TestError("a"), TestError("b")]) }.named("two")
    let error = await #expect(throws: AggregateError.self) { try await queue.run(operation) }
    #expect(error?.failures.map(\.path) == [["two"], ["two"]])
    #expect(error?.errors(of: TestError.self) == [TestError("a"), TestError("b")])
  }

  @Test func aGroupsErrorIsAlwaysAnAggregate() async {
    let group = GroupOperation("G") { AsyncBlockOperation { $0.finish(with: TestError("a")) }.named("m") }
    let error = await #expect(throws: AggregateError.self) { try await queue.run(group) }
    #expect(error?.failures.map(\.path) == [["G", "m"]])
  }

  @Test func aCancelledOperationThrowsCancellationErrorUnlessItHasAnError() async {
    let cancelled = AsyncOperation()
    cancelled.cancel()
    await #expect(throws: CancellationError.self) { try await queue.run(cancelled) }
    let explained = AsyncOperation()
    explained.cancel(with: TestError("because"))
    await #expect(throws: TestError("because")) { try await queue.run(explained) }
  }

  @Test(arguments: [false, true])
  func cancellingTheTaskCancelsTheOperationAndCancellingTheOperationEndsTheCall(byTask: Bool) async {
    let operation = HeldOperation()
    operation.addObserver(OperationObserver(didCancel: { _ in operation.gate.open() }))
    let task = Task { try await queue.run(operation) }
    await operation.begun.opened()
    if byTask { task.cancel() } else { operation.cancel() }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(operation.isCancelled && operation.isFinished)
  }

  @Test func aTaskThatIsCancelledBeforehandExecutesNothing() async {
    let (journal, mayRun) = (Journal<String>(), Gate())
    let operation = NoteOperation("never", journal)
    let task = Task {
      await mayRun.opened()
      try await queue.run(operation)
    }
    task.cancel()
    mayRun.open()
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(journal.entries.isEmpty && operation.isFinished)
  }

  @Test func completedThrowsWhatRunWould() async throws {
    let operation = AsyncBlockOperation { $0.finish(with: TestError("no")) }
    queue.addOperation(operation)
    for _ in 0..<2 { await #expect(throws: TestError("no")) { try await operation.completed() } }
    let fine = AsyncOperation()
    queue.addOperation(fine)
    try await fine.completed()
  }

  @Test func aGraphIsRunFromItsEnd() async throws {
    let journal = Journal<String>()
    let (a, b, c) = (NoteOperation("a", journal), NoteOperation("b", journal), NoteOperation("c", journal))
    let last = ResultOperation { journal.entries.count }
    a ==> [b, c] ==> last
    #expect(try await queue.run(graphEndingIn: last) == 3)
    #expect(journal.entries.first == "a")
    try await queue.run(graphEndingIn: AsyncOperation() ==> NoteOperation("d", journal))
    #expect(journal.entries.last == "d")
  }

  @Test func aGraphLeavesWhatIsElsewhereWhereItIs() async throws {
    let (journal, elsewhere) = (Journal<String>(), OperationQueue.suspended())
    let (a, b, c, d) = (
      NoteOperation("a", journal), NoteOperation("b", journal), NoteOperation("c", journal), NoteOperation("d", journal)
    )
    a ==> b ==> c ==> d
    let group = GroupOperation([a])
    elsewhere.addOperation(b)
    queue.addOperation(c as Operation)
    queue.addGraph(endingIn: d)
    #expect(Set(queue.operations) == [c, d] && elsewhere.operations == [b])
    elsewhere.isSuspended = false
    try await queue.run(group)
    await d.finished()
    #expect(journal.entries == ["a", "b", "c", "d"])
  }

  @Test func aGraphTakesInWhatTheMembersOfAGroupWaitFor() async throws {
    let journal = Journal<String>()
    let (outside, member) = (NoteOperation("outside", journal), NoteOperation("member", journal))
    outside ==> member
    try await queue.run(graphEndingIn: GroupOperation([member]))
    #expect(journal.entries == ["outside", "member"])
  }

  @Test func finishedWaitsForAnyOperation() async {
    let (plain, classic, own) = (BlockOperation {}, ClassicOperation(), HeldOperation())
    queue.addOperations([plain, classic, own])
    await plain.finished()
    await classic.begun.opened()
    await own.begun.opened()
    classic.gate.open()
    own.gate.open()
    await classic.finished()
    await own.finished()
    await queue.finished()
    #expect(queue.operationCount == 0 && classic.isFinished && own.isFinished)
  }

  @Test func theQueuesFinishedWaitsForWhatIsAddedMeanwhile() async {
    let (journal, held) = (Journal<String>(), HeldOperation())
    held.addObserver(OperationObserver(didFinish: { _ in journal.write("held") }))
    queue.addOperation(ResultOperation { queue.addOperation(held) })
    let waiting = Task { await queue.finished() }
    await held.begun.opened()
    held.gate.open()
    await waiting.value
    #expect(journal.entries == ["held"])
    await OperationQueue().finished()
  }

  @Test func namesFindAndCancel() async {
    let queue = OperationQueue.suspended()
    let operations: [Operation] = [
      AsyncOperation().named("a"), BlockOperation {}.named("b"), AsyncOperation().named("a"),
    ]
    queue.addOperations(operations)
    #expect(queue.operations(named: "a") == [operations[0], operations[2]])
    #expect(queue.operations(named: "c").isEmpty)
    #expect(queue.cancelOperations(named: "a") == 2)
    #expect(queue.cancelOperations(named: "a") == 0)
    #expect(operations.map(\.isCancelled) == [true, false, true])
    queue.isSuspended = false
    await queue.finished()
  }
}
