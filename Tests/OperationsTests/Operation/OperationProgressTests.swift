import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Operations that report their own units, and the groups around them.
@Suite(.timeLimit(.minutes(5)))
struct OperationProgressTests {
  private let queue = OperationQueue()

  @Test func aMembersUnitsFillItsPart() async {
    let (first, second) = (HeldOperation(), HeldOperation())
    let group = GroupOperation([first, second])
    let progress = group.progress
    first.progress.totalUnitCount = 4
    queue.addOperation(group)
    await first.begun.opened()
    await second.begun.opened()
    first.progress.completedUnitCount = 2
    #expect(progress.totalUnitCount == 2 && progress.fractionCompleted == 0.25)
    second.progress.totalUnitCount = 10
    second.progress.completedUnitCount = 5
    #expect(progress.fractionCompleted == 0.5)
    first.gate.open()
    await first.finished()
    #expect(first.progress.isFinished && progress.fractionCompleted == 0.75)
    second.gate.open()
    await group.finished()
    #expect(progress.isFinished && progress.completedUnitCount == 2)
  }

  @Test func askedForLateTheGroupKnowsWhatHasBeenReported() async {
    let held = HeldOperation()
    let group = GroupOperation([held, AsyncOperation()])
    group.maxConcurrentOperationCount = 1
    held.progress.totalUnitCount = 2
    held.progress.completedUnitCount = 1
    queue.addOperation(group)
    await held.begun.opened()
    #expect(group.progress.fractionCompleted == 0.25)
    held.gate.open()
    await group.finished()
    #expect(group.progress.fractionCompleted == 1)
  }

  @Test func weightsCount() async {
    let (heavy, light) = (HeldOperation(), HeldOperation())
    heavy.progressWeight = 3
    let group = GroupOperation([heavy, light])
    #expect(group.progress.totalUnitCount == 4)
    queue.addOperation(group)
    await heavy.begun.opened()
    heavy.progress.totalUnitCount = 2
    heavy.progress.completedUnitCount = 1
    #expect(group.progress.fractionCompleted == 0.375)
    heavy.gate.open()
    await heavy.finished()
    #expect(group.progress.fractionCompleted == 0.75)
    light.gate.open()
    await group.finished()
    #expect(group.progress.completedUnitCount == 4 && group.progress.isFinished)
  }

  @Test func oneThatDoesNotCountIsNotInTheWay() async {
    let (free, held) = (AsyncOperation(), HeldOperation())
    free.progressWeight = 0
    let group = GroupOperation()
    group.maxConcurrentOperationCount = 1
    let progress = group.progress
    group.addOperation(free)
    #expect(progress.fractionCompleted == 0)
    group.addOperation(held)
    #expect(progress.totalUnitCount == 1)
    queue.addOperation(group)
    await held.begun.opened()
    #expect(progress.fractionCompleted == 0)
    held.gate.open()
    await group.finished()
    #expect(progress.isFinished && progress.completedUnitCount == 1)
    let nothing = AsyncOperation()
    nothing.progressWeight = 0
    let empty = GroupOperation([nothing])
    #expect(empty.progress.fractionCompleted == 0)
    await queue.run(settling: [empty])
    #expect(empty.progress.isFinished)
  }

  @Test func aNestedGroupHasAWeightToo() async {
    let held = HeldOperation()
    let inner = GroupOperation([held])
    inner.progressWeight = 9
    let outer = GroupOperation([inner, AsyncOperation()])
    outer.maxConcurrentOperationCount = 1
    let progress = outer.progress
    queue.addOperation(outer)
    await held.begun.opened()
    held.progress.totalUnitCount = 3
    held.progress.completedUnitCount = 1
    #expect(abs(progress.fractionCompleted - 0.3) < 1e-5)
    held.gate.open()
    await outer.finished()
    #expect(progress.completedUnitCount == 10 && progress.isFinished)
  }

  @Test func reportingMoreAndMoreWorkNeverGoesBeyondOne() async {
    let held = HeldOperation()
    let group = GroupOperation([held])
    let progress = group.progress
    queue.addOperation(group)
    await held.begun.opened()
    for total in 1...10 {
      held.progress.totalUnitCount = Int64(total)
      held.progress.completedUnitCount = Int64(total)
      #expect(progress.fractionCompleted < 1)
    }
    held.gate.open()
    await group.finished()
    #expect(progress.fractionCompleted == 1)
  }

  @Test func cancellingTheProgressCancelsTheOperation() async {
    let held = HeldOperation()
    let parent = Progress.discreteProgress(totalUnitCount: 1)
    parent.addChild(held.progress, withPendingUnitCount: 1)
    let group = GroupOperation([])
    queue.addOperation(held)
    await held.begun.opened()
    parent.cancel()
    #expect(held.isCancelled)
    group.progress.cancel()
    #expect(group.isCancelled)
    held.gate.open()
    await held.finished()
    #expect(parent.isFinished)
  }

  @Test func itsOwnIsFreeToBeAnybodysChild() async {
    let held = HeldOperation()
    let group = GroupOperation([held])
    let progress = group.progress
    let parent = Progress.discreteProgress(totalUnitCount: 1)
    parent.addChild(held.progress, withPendingUnitCount: 1)
    queue.addOperation(group)
    await held.begun.opened()
    held.progress.totalUnitCount = 2
    held.progress.completedUnitCount = 1
    #expect(parent.fractionCompleted == 0.5 && progress.fractionCompleted == 0.5)
    held.gate.open()
    await group.finished()
  }

  @Test func aTotalThatIsNotKnownAnyMore() async throws {
    let operation = AsyncOperation()
    let group = GroupOperation([operation])
    let progress = group.progress
    operation.progress.totalUnitCount = 10
    operation.progress.completedUnitCount = 5
    operation.progress.totalUnitCount = 0
    #expect(operation.progress.isIndeterminate && progress.fractionCompleted == 0)
    operation.progress.totalUnitCount = 20
    #expect(progress.fractionCompleted == 0.25)
    try await queue.run(group)
    #expect(progress.isFinished)
  }

  @Test func anOperationThatHasFinishedIsDone() async throws {
    let operation = AsyncOperation()
    try await queue.run(operation)
    #expect(operation.progress.isFinished)
    let cancelled = AsyncOperation()
    cancelled.progress.totalUnitCount = 100
    cancelled.cancel()
    await queue.run(settling: [cancelled])
    #expect(cancelled.progress.isFinished && cancelled.progress.completedUnitCount == 100)
  }

  @Test func manyMembersReportAtOnce() async throws {
    final class Counting: AsyncOperation, @unchecked Sendable {
      override func execute() {
        progress.totalUnitCount = 10
        for _ in 0..<10 { progress.completedUnitCount += 1 }
        finish()
      }
    }
    let groups = (0..<10).map { _ in GroupOperation((0..<20).map { _ in Counting() }) }
    let outer = GroupOperation(groups)
    let progress = outer.progress
    try await queue.run(outer)
    #expect(progress.isFinished && progress.completedUnitCount == 10)
  }

  @Test func aGroupThatTimesOutIsDoneThoughItsMembersAreNot() async {
    let clock = ManualClock()
    let (held, plain) = (HeldOperation(), HeldOperation())
    held.progress.totalUnitCount = 2
    let innermost = GroupOperation([held, plain])
    let inner = GroupOperation([innermost, AsyncOperation()])
    inner.timeout = .seconds(1)
    let outer = GroupOperation([inner, AsyncOperation()])
    outer.clock = clock
    let progress = outer.progress
    queue.addOperation(outer)
    await held.begun.opened()
    await plain.begun.opened()
    clock.advance(by: .seconds(1))
    await outer.finished()
    #expect(progress.fractionCompleted == 1 && inner.progress.fractionCompleted == 1)
    held.progress.completedUnitCount = 1
    held.gate.open()
    plain.gate.open()
    await innermost.finished()
    #expect(progress.fractionCompleted == 1 && inner.progress.fractionCompleted == 1)
  }

  @Test func whatComesAfterATimeoutDoesNotCount() async {
    let clock = ManualClock()
    let held = HeldOperation()
    let group = GroupOperation([held])
    group.clock = clock
    group.timeout = .seconds(1)
    let progress = group.progress
    queue.addOperation(group)
    await held.begun.opened()
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    #expect(progress.fractionCompleted == 1)
    held.progress.totalUnitCount = 2
    group.addOperation(AsyncOperation())
    #expect(progress.fractionCompleted == 1)
    held.gate.open()
    await held.finished()
    #expect(progress.fractionCompleted == 1)
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
    var group = GroupOperation([innermost])
    for _ in 0..<50_000 { group = GroupOperation([group]) }
    innermost.progress.completedUnitCount = 1
    await queue.run(settling: [group])
    #expect(group.progress.isFinished)
  }

  @Test(arguments: [1, 15, 16, 17, 40])
  func itIsTheSameWheneverItIsAskedFor(depth: Int) async {
    let journal = Journal<Bool>()
    let check = OperationObserver(
      didCancel: { _ in
        let group = GroupOperation([GroupOperation([AsyncOperation()])])
        journal.write(group.progress === group.progress && group.progress.totalUnitCount == 1)
      },
      didFinish: { _ in
        let group = GroupOperation([GroupOperation([AsyncOperation()])])
        journal.write(group.progress === group.progress && group.progress.totalUnitCount == 1)
      }
    )
    var group = GroupOperation([AsyncOperation()])
    group.addObserver(check)
    for _ in 0..<depth {
      group = GroupOperation([group])
      group.addObserver(check)
    }
    group.cancel()
    await queue.run(settling: [group])
    #expect(journal.entries == Array(repeating: true, count: 2 * (depth + 1)))
  }

  @Test func followedWhileItsMembersEndItCountsEachOnce() async {
    for _ in 0..<4_000 {
      let inner = GroupOperation((0..<20).map { _ in AsyncOperation() })
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
      var progress: Progress?
      do {
        var group = GroupOperation([AsyncOperation()])
        for _ in 0..<50_000 { group = GroupOperation([group]) }
        progress = group.progress
      }
      #expect(progress?.totalUnitCount == 1)
      progress = nil
    }
  }

  @Test func aGroupThatTimesOutEndsItDeepInside() async {
    let clock = ManualClock()
    let held = HeldOperation()
    var group = GroupOperation([held])
    let innermost = group
    for _ in 0..<20_000 { group = GroupOperation([group]) }
    group.clock = clock
    group.timeout = .seconds(1)
    let progress = group.progress
    queue.addOperation(group)
    await held.begun.opened()
    await clock.waitForSleepers(1)
    clock.advance(by: .seconds(1))
    await group.finished()
    #expect(progress.fractionCompleted == 1 && innermost.progress.fractionCompleted == 1)
    held.gate.open()
    await innermost.finished()
  }

  @Test func theTotalIsNotTakenBackToZero() {
    var group = GroupProgress()
    _ = group.follow(with: OperationProgress(of: AsyncOperation()))
    group.add(1)
    #expect(group.takeChange()?.change.total == 1)
    group.add(-1)
    #expect(group.takeChange()?.change.total == 0)
    group.add(3)
    #expect(group.takeChange()?.change.total == 2)
    #expect(group.end().isEmpty && group.takeChange()?.change.completed == 3)
    group.add(1)
    #expect(group.takeChange()?.change.total == 0)
  }

  // MARK: Streams

  @Test func theStreamTellsTheNewestAndEndsWithTheGroup() async {
    let members = (0..<4).map { _ in HeldOperation() }
    let group = GroupOperation(members)
    queue.addOperation(group)
    for member in members { await member.begun.opened() }
    var updates = group.progressUpdates.makeAsyncIterator()
    #expect(await updates.next() == 0)
    for (index, member) in members.dropLast().enumerated() {
      member.gate.open()
      await member.finished()
      // The group hears of it a moment after the member's own observers have.
      var fraction: Double? = 0
      while let next = await updates.next(), next < Double(index + 1) / 4 { fraction = next }
      _ = fraction
    }
    members[3].progress.totalUnitCount = 2
    members[3].progress.completedUnitCount = 1
    #expect(await updates.next() == 0.875)
    members[3].gate.open()
    var last: Double?
    while let next = await updates.next() { last = next }
    #expect(last == 1 && group.isFinished)
  }

  @Test func whoeverIsSlowGetsTheNewest() async throws {
    let group = GroupOperation((0..<100).map { _ in AsyncOperation() })
    let updates = group.progressUpdates
    try await queue.run(group)
    var heard: [Double] = []
    for await fraction in updates { heard.append(fraction) }
    #expect(heard == [1])
    // A late one hears just that.
    heard = []
    for await fraction in group.progressUpdates { heard.append(fraction) }
    #expect(heard == [1])
  }

  @Test func whatHappensDeepInsideIsHeardOutside() async {
    let held = HeldOperation()
    let group = GroupOperation([GroupOperation([GroupOperation([held])])])
    var updates = group.progressUpdates.makeAsyncIterator()
    #expect(await updates.next() == 0)
    queue.addOperation(group)
    await held.begun.opened()
    held.progress.totalUnitCount = 4
    held.progress.completedUnitCount = 1
    #expect(await updates.next() == 0.25)
    held.gate.open()
    await group.finished()
  }

  @Test func theStreamOfAGroupThatIsNeverRunEndsWithIt() async {
    var group: GroupOperation? = GroupOperation([AsyncOperation()])
    let updates = group?.progressUpdates
    let heard = Gate()
    let reading = Task {
      guard let updates else { return }
      for await _ in updates { heard.open() }
    }
    await heard.opened()
    group = nil
    await reading.value
    withExtendedLifetime(group) {}
  }

  @Test func streamsThatAreLeftBehindLeaveNothing() async {
    let held = HeldOperation()
    let group = GroupOperation([held])
    queue.addOperation(group)
    for _ in 0..<1_000 { for await _ in group.progressUpdates { break } }
    #expect(group.core.withLock { $0.waiters.count } == 1, "one for all of them")
    #expect(group.engine.state.withLock { $0.progress.audience.isEmpty })
    held.gate.open()
    await group.finished()
  }

  @Test func aStreamNobodyReadsIsLetGo() async {
    let live = LiveCount()
    do {
      let group = CountedGroup(live, [AsyncOperation()])
      _ = group.progressUpdates
      var updates = group.progressUpdates.makeAsyncIterator()
      _ = await updates.next()
    }
    await live.none()
  }
}
