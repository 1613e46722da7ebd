import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// Graphs that share operations, added to several groups.
@Suite(.timeLimit(.minutes(5)))
struct SharedGraphTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  @Test func addGraphLeavesAMemberOfAnotherGroupAlone() async {
    let held = HeldOperation()
    let shared = NoteOperation("shared", journal)
    let second = GroupOperation([held, shared])
    let first = GroupOperation()
    // The operation would get an index of this group.
    for _ in 0..<5 { first.addOperation(AsyncOperation()) }
    first.addGraph(endingIn: shared)
    queue.addOperation(second)
    await shared.finished()
    await poll { second.operations.count != 2 }
    #expect(second.operations == [held])
    second.cancel()
    #expect(held.isCancelled)
    held.gate.open()
    await second.finished()
    first.cancel()
  }

  @Test func addGraphToACancelledGroupLeavesAloneWhatRunsElsewhere() async {
    let held = HeldOperation()
    let last = NoteOperation("last", journal)
    held ==> last
    await queue.add(held, until: held.begun)
    let group = GroupOperation()
    group.cancel()
    group.addGraph(endingIn: held)
    #expect(!held.isCancelled)
    await queue.run(settling: [group])
    group.addGraph(endingIn: held)
    group.addGraph(endingIn: last)
    #expect(!held.isCancelled && last.isCancelled && last.isFinished)
    held.gate.open()
    await held.finished()
    #expect(!held.isCancelled)
  }

  @Test func twoGroupsThatAreBuiltAtOnceWithASharedDependency() async {
    let rounds = isThorough ? 2_000 : 400
    for _ in 0..<rounds {
      let login = NoteOperation("login", journal)
      let ends = (0..<3).map { _ in AsyncOperation() }
      for end in ends { login ==> end }
      let groups = Journal<GroupOperation>()
      await onThreads(3) { index in groups.write(GroupOperation("\(index)") { ends[index] }) }
      #expect(groups.entries.filter { $0.operations.contains(login) }.count == 1)
      queue.addOperations(groups.entries)
      for group in groups.entries { await group.finished() }
      #expect(groups.entries.allSatisfy { $0.isSuccessful })
    }
    #expect(journal.entries.count == rounds)
  }

  @Test func anOperationNamedInTheBracesThatIsTakenEndsTheProgram() async {
    let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
      let taken = AsyncOperation().named("taken")
      let first = GroupOperation([taken])
      _ = GroupOperation { taken }
      withExtendedLifetime(first) {}
    }
    expectSentence("“taken” is in a group already", in: result)
  }
}
