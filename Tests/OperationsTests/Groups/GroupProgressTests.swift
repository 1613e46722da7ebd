import Foundation
import Operations
import OperationsTestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct GroupProgressTests {
  private let queue = OperationQueue()

  @Test func aUnitAMember() async throws {
    let held = HeldOperation()
    let group = GroupOperation([AsyncOperation(), BlockOperation {}, held])
    let progress = group.progress
    #expect(progress === group.progress)
    #expect(progress.totalUnitCount == 3 && progress.completedUnitCount == 0)
    group.maxConcurrentOperationCount = 1
    await queue.add(group, until: held.begun)
    #expect(progress.completedUnitCount == 2)
    group.addOperation(AsyncOperation())
    #expect(progress.totalUnitCount == 4)
    held.gate.open()
    await group.finished()
    #expect(progress.completedUnitCount == 4 && progress.isFinished)
  }

  @Test func askedForLateItKnowsThePast() async throws {
    let group = GroupOperation([AsyncOperation(), GroupOperation([AsyncOperation()])])
    try await queue.run(group)
    #expect(group.progress.totalUnitCount == 2 && group.progress.isFinished)
  }

  @Test func anEmptyGroupHasDoneAllItHadToDo() async throws {
    let group = GroupOperation()
    let progress = group.progress
    try await queue.run(group)
    #expect(progress.isFinished && progress.fractionCompleted == 1)
  }

  @Test func nestedGroupsFillTheirUnit() async {
    let held = HeldOperation()
    let inner = GroupOperation([AsyncOperation(), held])
    inner.maxConcurrentOperationCount = 1
    let outer = GroupOperation([inner, GroupOperation()])
    let parent = Progress.discreteProgress(totalUnitCount: 2)
    parent.addChild(outer.progress, withPendingUnitCount: 2)
    // The inner group's is free to have another parent.
    let other = Progress.discreteProgress(totalUnitCount: 1)
    other.addChild(inner.progress, withPendingUnitCount: 1)
    await queue.add(outer, until: held.begun)
    #expect(inner.progress.fractionCompleted == 0.5 && other.fractionCompleted == 0.5)
    held.gate.open()
    await outer.finished()
    #expect(outer.progress.isFinished && parent.isFinished && other.isFinished)
    #expect(parent.completedUnitCount == 2)
  }

  @Test func cancellingItCancelsTheGroup() async {
    let member = StoppedOperation(reporting: CancellationError())
    let group = GroupOperation([member])
    let parent = Progress.discreteProgress(totalUnitCount: 1)
    parent.addChild(group.progress, withPendingUnitCount: 1)
    await queue.add(group, until: member.begun)
    parent.cancel()
    await group.finished()
    #expect(group.isCancelled)
  }
}
