import Foundation
import Operations
import OperationsTestSupport
import Soak
import Testing

/// What happens to operations that are added to a group that has finished.
@Suite(.timeLimit(.minutes(5)))
struct FinishedGroupTests {
  private let queue = OperationQueue()
  private let journal = Journal<String>()

  private func note(_ name: String) -> NoteOperation { NoteOperation(name, journal) }

  private func finishedGroup() async -> GroupOperation {
    let group = GroupOperation([AsyncOperation()]).named("g")
    await queue.run(settling: [group])
    return group
  }

  private func expectShutDown(_ operations: [AsyncOperation]) {
    for operation in operations {
      #expect(operation.isFinished && operation.isCancelled && operation.errors.count == 1)
      #expect(operation.errors.allSatisfy { OperationError.Code.shutDown ~= $0 })
    }
    #expect(journal.entries.isEmpty)
  }

  @Test func anAddedOperation_finishesWithAnErrorThatNamesBoth() async {
    let (group, late, after) = (await finishedGroup(), note("late"), note("after"))
    late ==> after
    group.addOperation(late)
    expectShutDown([late])
    let message = "“late” did not run because “g” had finished. Add it to a new group."
    #expect((late.errors.first as? OperationError)?.message == message)
    #expect(group.isSuccessful && group.operations.isEmpty)
    await queue.run(settling: [after])
    #expect(journal.entries == ["after"])
  }

  @Test func anArrayAndAGraph_finish() async {
    let (group, list, graph) = (await finishedGroup(), ["a", "b", "c"].map { note($0) }, ["d", "e"].map { note($0) })
    list[2] ==> list[0]
    let inner = note("inner")
    group.addOperations(list + [GroupOperation([inner])])
    group.addGraph(endingIn: chain(graph)[1])
    for operation in list + graph + [inner] { await operation.finished() }
    expectShutDown(list + graph)
    #expect(inner.isCancelled && inner.errors.isEmpty)
  }

  @Test func plainOperations_finish() async {
    let (group, held) = (await finishedGroup(), await queue.holding())
    let operations = [plain("ready", journal), plain("waiting", journal)]
    held ==> operations[1]
    group.addOperations(operations)
    for operation in operations { await operation.finished() }
    #expect(operations.allSatisfy { $0.isCancelled } && journal.entries.isEmpty && held.isExecuting)
    held.gate.open()
  }

  @Test func afterACancellation_itFinishesWithoutAnError() async {
    let group = GroupOperation()
    group.cancel()
    await queue.run(settling: [group])
    let late = note("late")
    group.addOperation(late)
    #expect(late.isFinished && late.isCancelled && late.errors.isEmpty && journal.entries.isEmpty)
  }

  @Test func addingWhileTheGroupFinishes_executesOrShutsDown() async {
    for round in 0..<(isThorough ? 30_000 : 1_000) {
      let (group, member) = (GroupOperation([AsyncOperation()]), AsyncOperation())
      queue.addOperation(group)
      work(for: .microseconds(round % 25))
      group.addOperation(member)
      await member.finished()
      await group.finished()
      let isShutDown = member.errors.contains { OperationError.Code.shutDown ~= $0 }
      #expect(isShutDown ? member.isCancelled : member.isSuccessful)
      #expect(group.isSuccessful && group.operations.isEmpty)
    }
  }
}
