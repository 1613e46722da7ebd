import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Operations that report their own units, and the groups around them.
@Suite(.timeLimit(.minutes(5)))
struct OperationProgressTests {
  private let queue = OperationQueue()

  /// Returns when all of these members of a group have begun.
  private func begin(_ group: GroupOperation, _ members: [HeldOperation]) async {
    queue.addOperation(group)
    for member in members { await member.begun.opened() }
  }

  private func report(_ completed: Int64, of total: Int64, _ operation: AsyncOperation) {
    operation.progress.totalUnitCount = total
    operation.progress.completedUnitCount = completed
  }

  @Test(arguments: [false, true])
  func aMembersUnitsFillItsPart_accordingToItsWeight(isNested: Bool) async {
    let (heavy, light) = (HeldOperation(), HeldOperation())
    let member: AsyncOperation = isNested ? GroupOperation([heavy]) : heavy
    member.progressWeight = 3
    let group = GroupOperation([member, light])
    let progress = group.progress
    #expect(progress.totalUnitCount == 4)
    // A member's own progress can be added to any parent.
    let parent = Progress.discreteProgress(totalUnitCount: 1)
    parent.addChild(heavy.progress, withPendingUnitCount: 1)
    await begin(group, [heavy, light])
    report(1, of: 2, heavy)
    #expect(progress.fractionCompleted == 0.375 && parent.fractionCompleted == 0.5)
    report(5, of: 10, light)
    #expect(progress.fractionCompleted == 0.5)
    await member.finished(opening: heavy.gate)
    #expect(heavy.progress.isFinished && progress.fractionCompleted == 0.875)
    await group.finished(opening: light.gate)
    #expect(progress.completedUnitCount == 4 && progress.isFinished)
  }

  @Test func aUnitAMember_orItsWeightThoughItReportsNothing() async {
    let (free, heavy, held) = (AsyncOperation(), AsyncOperation(), HeldOperation())
    let group = GroupOperation(maxConcurrentOperationCount: 1)
    (free.progressWeight, heavy.progressWeight) = (0, 5)
    let progress = group.progress
    group.addOperation(free)
    #expect(progress === group.progress && progress.fractionCompleted == 0)
    group.addOperations([heavy, BlockOperation {}, held])
    #expect(progress.totalUnitCount == 7 && progress.completedUnitCount == 0)
    await begin(group, [held])
    // The next member may start before the end of the last one is counted.
    await poll { OperationProgress.exclusively { progress.completedUnitCount } == 6 }
    group.addOperation(AsyncOperation())
    #expect(progress.totalUnitCount == 8)
    await group.finished(opening: held.gate)
    #expect(progress.isFinished && progress.completedUnitCount == 8)
  }

  @Test func aTotalThatIsNotKnownAnyMoreOrGrows_isNotCompleteBeforeTheEnd() async {
    let held = HeldOperation()
    let group = GroupOperation([held])
    let progress = group.progress
    await begin(group, [held])
    report(5, of: 10, held)
    held.progress.totalUnitCount = 0
    #expect(held.progress.isIndeterminate && progress.fractionCompleted == 0)
    held.progress.totalUnitCount = 20
    #expect(progress.fractionCompleted == 0.25)
    for total in 1...10 {
      report(Int64(total), of: Int64(total), held)
      #expect(progress.fractionCompleted < 1)
    }
    await group.finished(opening: held.gate)
    #expect(progress.fractionCompleted == 1)
  }

  @Test(arguments: [false, true]) func cancellingTheProgressCancelsTheOperation(isGroup: Bool) async {
    let (held, parent) = (HeldOperation(), Progress.discreteProgress(totalUnitCount: 1))
    let operation: AsyncOperation = isGroup ? GroupOperation([held]) : held
    parent.addChild(operation.progress, withPendingUnitCount: 1)
    await queue.add(operation, until: held.begun)
    parent.cancel()
    // On Linux, Foundation cancels a child on another thread.
    await poll { operation.isCancelled && held.isCancelled }
    await operation.finished(opening: held.gate)
    #expect(parent.isFinished)
  }

  @Test func finishedOrCancelledOrEmpty_isDone() async {
    let (operation, cancelled, empty) = (AsyncOperation(), AsyncOperation(), GroupOperation())
    let progress = empty.progress
    cancelled.progress.totalUnitCount = 100
    cancelled.cancel()
    await queue.run(settling: [operation, cancelled, empty])
    #expect(operation.progress.isFinished && progress.isFinished && progress.fractionCompleted == 1)
    #expect(cancelled.progress.isFinished && cancelled.progress.completedUnitCount == 100)
  }

  @Test func aGroupThatTimesOutIsDoneWhateverItsMembersReportAfterwards() async {
    let clock = ManualClock()
    let (held, plain) = (HeldOperation(), HeldOperation())
    held.progress.totalUnitCount = 2
    let innermost = GroupOperation([held, plain])
    let middle = GroupOperation([innermost, AsyncOperation()])
    let inner = nestedGroups(around: middle, levels: isThorough ? 20_001 : 4_001)
    inner.timeout = .seconds(1)
    let outer = GroupOperation([inner, AsyncOperation()])
    outer.clock = clock
    _ = outer.progress
    await begin(outer, [held, plain])
    await clock.advance(by: .seconds(1), sleepers: 1)
    await outer.finished()
    func expectEnd() { for group in [outer, inner, innermost] { #expect(group.progress.fractionCompleted == 1) } }
    expectEnd()
    report(1, of: 4, held)
    report(1, of: 2, plain)
    inner.addOperation(AsyncOperation())
    held.gate.open()
    await innermost.finished(opening: plain.gate)
    expectEnd()
  }

  @Test func aWeightCountsWheneverTheMemberBeginsToReport() async {
    for _ in 0..<200 {
      let members = (0..<20).map { _ in AsyncOperation() }
      for member in members { member.progressWeight = 10 }
      let group = GroupOperation()
      let progress = group.progress
      await onThreads(2) { thread in
        if thread == 0 { group.addOperations(members) } else { for member in members { _ = member.progress } }
      }
      #expect(progress.totalUnitCount == 200)
    }
  }

  @Test func deepInside() async {
    let innermost = AsyncOperation()
    let group = nestedGroups(around: innermost, levels: isThorough ? 50_001 : 10_001)
    innermost.progress.completedUnitCount = 1
    await queue.run(settling: [group])
    #expect(group.progress.isFinished)
  }

  @Test func followedWhileItsMembersReportAndEnd_itCountsEachOnce() async {
    for _ in 0..<(isThorough ? 4_000 : 200) {
      let members = (0..<20).map { _ in
        AsyncBlockOperation { operation in
          operation.progress.totalUnitCount = 10
          for _ in 0..<10 { operation.progress.completedUnitCount += 1 }
          operation.finish()
        }
      }
      let inner = GroupOperation(members)
      let outer = GroupOperation([inner])
      queue.addOperation(outer)
      await onThreads(2) { thread in _ = thread == 0 ? inner.progress : outer.progress }
      await outer.finished()
      #expect(inner.progress.completedUnitCount == 20 && inner.progress.totalUnitCount == 20)
      #expect(outer.progress.completedUnitCount == 1 && outer.progress.fractionCompleted == 1)
    }
  }

  @Test func nestedGroupsReleaseItWithoutRecursion() async throws {
    try await onSmallStack {
      let levels = isThorough ? 50_001 : 10_001
      var progress: Progress? = nestedGroups(around: AsyncOperation(), levels: levels).progress
      #expect(progress?.totalUnitCount == 1)
      progress = nil
    }
  }

  @Test func theTotalIsNotTakenBackToZero() {
    var group = GroupProgress()
    _ = group.follow(with: OperationProgress(of: AsyncOperation()))
    group.add(1)
    #expect(group.takeChange()?.total == 1)
    group.add(-1)
    #expect(group.takeChange()?.total == 0)
    group.add(3)
    #expect(group.takeChange()?.total == 2)
    #expect(group.end().isEmpty && group.takeChange()?.completed == 3)
    group.add(1)
    #expect(group.takeChange()?.total == 0)
  }

  // MARK: Streams

  @Test func theStreamTellsTheNewestAndEndsWithTheGroup() async {
    let members = (0..<4).map { _ in HeldOperation() }
    let inner = GroupOperation(members)
    let group = nestedGroups(around: inner, levels: 2)
    await begin(group, members)
    var updates = group.progressUpdates.makeAsyncIterator()
    #expect(await updates.next() == 0)
    for (index, member) in members.dropLast().enumerated() {
      await member.finished(opening: member.gate)
      // The group is notified a moment after the member's own observers.
      while let next = await updates.next(), next < Double(index + 1) / 4 {}
    }
    #expect(inner.progress.fractionCompleted == 0.75)
    report(1, of: 2, members[3])
    #expect(await updates.next() == 0.875)
    members[3].gate.open()
    var last: Double?
    while let next = await updates.next() { last = next }
    #expect(last == 1 && group.isFinished)
  }

  @Test func aSlowConsumerGetsOnlyTheNewest() async throws {
    let group = GroupOperation((0..<100).map { _ in AsyncOperation() })
    let updates = group.progressUpdates
    try await queue.run(group)
    // A late consumer gets the same.
    for stream in [updates, group.progressUpdates] { #expect(await stream.reduce(into: []) { $0.append($1) } == [1]) }
  }

  @Test func theStreamOfAGroupThatIsNeverRunEndsWithIt() async {
    var group: GroupOperation? = GroupOperation([AsyncOperation()])
    var updates = group?.progressUpdates.makeAsyncIterator()
    #expect(await updates?.next() == 0)
    group = nil
    #expect(await updates?.next() == nil)
  }

  @Test func streamsThatAreLeftBehindLeaveNothing() async {
    let held = HeldOperation()
    let group = await queue.add(GroupOperation([held]), until: held.begun)
    for _ in 0..<1_000 { for await _ in group.progressUpdates { break } }
    #expect(group.core.withLock { $0.waiters.count } == 1, "one for all of them")
    #expect(group.engine.state.withLock { $0.progress.listeners.elements.isEmpty })
    await group.finished(opening: held.gate)
  }
}
