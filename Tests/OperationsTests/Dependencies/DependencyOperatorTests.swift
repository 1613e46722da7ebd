import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct DependencyOperatorTests {
  private let journal = Journal<String>()

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  @Test func aChainRunsInItsOrder() async {
    let (a, b, c) = (note("a"), note("b"), note("c"))
    let last = a ==> b ==> c
    #expect(last === c)
    #expect(b.dependencies == [a] && c.dependencies == [b])
    OperationQueue().addOperations([c, b, a])
    await c.finished()
    #expect(journal.entries == ["a", "b", "c"])
  }

  @Test func manyToOneAndOneToMany() async {
    let (a, b, c, d) = (note("a"), note("b"), note("c"), note("d"))
    let last = a ==> [b, c] ==> d
    #expect(last === d)
    #expect(d.dependencies == [b, c])
    OperationQueue().addOperations([d, c, b, a])
    await d.finished()
    #expect(journal.entries.first == "a" && journal.entries.last == "d" && journal.count == 4)
  }

  @Test func manyToMany() {
    let (a, b, c, d) = (note("a"), note("b"), note("c"), note("d"))
    let right = [a, b] ==> [c, d]
    #expect(right == [c, d])
    #expect(c.dependencies == [a, b] && d.dependencies == [a, b])
  }

  @Test func itBindsTighterThanAssignmentTernaryAndNilCoalescingAndAdditionTighterThanIt() {
    let (a, b, c, d) = (note("a"), note("b"), note("c"), note("d"))
    let none: NoteOperation? = nil
    let last = none ?? a ==> b
    #expect(last === b)
    let chosen = last === b ? a ==> b : a
    #expect(chosen === b)
    let list = [b]
    let sum = [a] + list ==> c
    #expect(sum === c && c.dependencies == [a, b])
    let end: [Operation] = c ==> [d] + [AsyncOperation()]
    #expect(end.count == 2 && end.allSatisfy { $0.dependencies == [c] })
  }

  @Test func waitsForSaysTheSame() {
    let (a, b, c) = (note("a"), note("b"), note("c"))
    #expect(c.waits(for: a).waits(for: [b]) === c)
    #expect(c.dependencies == [a, b])
  }

  @Test func acrossTypesAndPlainOperations() async {
    let (first, middle, last) = (plain("plain first", journal), note("middle"), plain("plain last", journal))
    first ==> middle ==> last
    #expect(middle.dependencies == [first] && last.dependencies == [middle])
    let queue = OperationQueue()
    queue.addOperations([last, middle, first])
    await last.finished()
    #expect(journal.entries == ["plain first", "middle", "plain last"])
  }

  @Test func acrossQueuesWhicheverIsEnqueuedFirst() async {
    for round in 0..<200 {
      let journal = Journal<String>()
      let operations = (0..<3).map { NoteOperation("\($0)", journal) }
      operations[0] ==> operations[1] ==> operations[2]
      let order = [[0, 1, 2], [2, 1, 0], [1, 0, 2], [2, 0, 1]][round % 4]
      for index in order { OperationQueue().addOperation(operations[index]) }
      await operations[2].finished()
      #expect(journal.entries == ["0", "1", "2"])
    }
  }

  @Test func aDependencyNamedTwiceShowsOnceAndIsWaitedForOnce() async {
    let (a, b) = (note("a"), note("b"))
    a ==> b
    a ==> b
    #expect(b.dependencies == [a])
    OperationQueue().addOperations([b, a])
    await b.finished()
    #expect(journal.entries == ["a", "b"])
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

  @Test func chainMakesEachWaitForTheOneBefore() async {
    let operations = (0..<50).map { note("\($0)") }
    let queue = OperationQueue()
    queue.addOperations(chain(operations).reversed())
    await queue.finished()
    #expect(journal.entries == (0..<50).map { "\($0)" })
    #expect(chain([]).isEmpty && chain([operations[0]]) == [operations[0]])
  }

  @Test func aDependencyAddedToAnOperationInAQueueIsWaitedFor() async {
    let queue = OperationQueue.suspended()
    let (a, b) = (HeldOperation(), note("b"))
    queue.addOperation(b)
    a ==> b
    queue.isSuspended = false
    OperationQueue().addOperation(a)
    await a.begun.opened()
    #expect(b.state == .pending && !b.isReady)
    a.gate.open()
    await b.finished()
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

  @Test func aCancelledDependentIsReadyAtOnce() async {
    let (a, b) = (note("a"), note("b"))
    a ==> b
    OperationQueue().addOperation(b)
    b.cancel()
    await b.finished()
    #expect(journal.entries.isEmpty && a.state == .pending)
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
}
