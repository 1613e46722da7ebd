import Foundation
import OperationsTestSupport
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct DependencyOperatorTests: NotingSuite {
  let journal = Journal<String>()

  @Test func oneToManyToManyToOne_eachOnce() async {
    let (a, b, c, d, e, f) = (note("a"), note("b"), note("c"), note("d"), note("e"), note("f"))
    let last = a ==> [b, c] ==> [d, e] ==> f
    a ==> b
    #expect(last === f && f.dependencies == [d, e])
    #expect([b, c].allSatisfy { $0.dependencies == [a] } && [d, e].allSatisfy { $0.dependencies == [b, c] })
    OperationQueue().addOperations([f, e, d, c, b, a])
    await f.finished()
    let order = journal.entries
    #expect(order.first == "a" && Set(order.dropFirst().prefix(2)) == ["b", "c"])
    #expect(order.last == "f" && order.count == 6)
  }

  @Test func itBindsTighterThanAssignmentTernaryAndNilCoalescingAndAdditionTighterThanIt() {
    let (a, b, c, none) = (note("a"), note("b"), note("c"), NoteOperation?.none)
    let last = none ?? a ==> b
    let chosen = last === b ? a ==> b : a
    let list = [b]
    let sum = [a] + list ==> c
    #expect(last === b && chosen === b && sum === c && c.dependencies == [a, b])
    let end: [Operation] = c ==> [note("d")] + [AsyncOperation()]
    #expect(end.count == 2 && end.allSatisfy { $0.dependencies == [c] })
  }

  @Test func waitsForSaysTheSame() {
    let (a, b, c) = (note("a"), note("b"), note("c"))
    #expect(c.waits(for: a).waits(for: [b]) === c)
    #expect(c.dependencies == [a, b] && chain([]).isEmpty && chain([a]) == [a])
  }

  @Test func acrossTypesAndPlainOperations() async {
    let (first, middle, last) = (plain("plain first", journal), note("middle"), plain("plain last", journal))
    let end = first ==> middle ==> last
    #expect(end === last && middle.dependencies == [first] && last.dependencies == [middle])
    OperationQueue().addOperations([last, middle, first])
    await last.finished()
    #expect(journal.entries == ["plain first", "middle", "plain last"])
  }

  @Test(arguments: [false, true])
  func aFinishedDependencyIsNotWaitedFor(isPlain: Bool) async {
    let (a, b) = (isPlain ? plain("a", journal) : note("a"), note("b"))
    await start(a)
    a ==> b
    // The package is notified of a plain dependency's end a moment later, through a private queue.
    #expect(isPlain || b.isReady)
    OperationQueue().addOperation(b)
    await b.finished()
    #expect(journal.entries == ["a", "b"])
  }

  @Test func aDependencyAddedToAnOperationInAQueueIsWaitedFor() async {
    let queue = OperationQueue.suspended()
    let (a, b) = (HeldOperation(), note("b"))
    queue.addOperation(b)
    a ==> b
    queue.isSuspended = false
    await OperationQueue().begin(a)
    #expect(b.state == .pending && !b.isReady)
    await b.finished(opening: a.gate)
    #expect(a.isFinished)
  }

  @Test func aCancelledDependencyStillHasToFinish() async {
    let (a, b) = (note("a"), note("b"))
    a ==> b
    a.cancel()
    #expect(a.isReady && !b.isReady)
    OperationQueue().addOperations([a, b])
    await b.finished()
    #expect(journal.entries == ["b"])
  }

  @Test(arguments: [true, false])
  func itMayBeStartedByHandAsSoonAsItsDependenciesAreSeenToBeFinished(askedBefore: Bool) async {
    for round in 0..<300 {
      let dependency = round.isMultiple(of: 2) ? AsyncOperation() : BlockOperation {}
      let dependent = AsyncOperation()
      dependency ==> dependent
      // Foundation has a gate then, which another thread may be just about to open.
      if askedBefore { #expect(!dependent.isReady) }
      await onThreads(2) { thread in
        if thread == 0 { return dependency.start() }
        dependency.waitUntilFinished()
        dependent.start()
      }
      #expect(dependent.isFinished)
    }
  }

  @Test func dependentsThatWereReleased_doNotPileUp() {
    let dependency = AsyncOperation()
    for _ in 0..<10_000 { dependency ==> AsyncOperation() }
    #expect(dependency.core.withLock { $0.ledger.dependents?.count ?? .max } < 1000)
  }
}
