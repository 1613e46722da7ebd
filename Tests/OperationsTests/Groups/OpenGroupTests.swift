import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct OpenGroupTests: NotingSuite {
  enum Closing: CaseIterable, Sendable {
    case byProperty, byFinish, byFinishWithError, byCancel

    func close(_ group: GroupOperation) {
      switch self {
      case .byProperty: group.staysOpen = false
      case .byFinish: group.finish()
      case .byFinishWithError: group.finish(with: TestError("closed"))
      case .byCancel: group.cancel()
      }
    }
  }

  private let queue = OperationQueue()
  let journal = Journal<String>()

  /// A group that stays open, and executes when this returns.
  private func openGroup(_ operations: [Operation] = [], suspended: Bool = false) async -> GroupOperation {
    let group = GroupOperation(operations).named("feed")
    group.staysOpen = true
    group.isSuspended = suspended
    await queue.begin(group)
    return group
  }

  /// Adds a member, and returns when all members have finished.
  private func run(_ member: Operation, in group: GroupOperation) async {
    group.addOperation(member)
    await group.waitForRoom(below: 1)
  }

  // MARK: The end

  @Test(arguments: Closing.allCases)
  func runsWhatIsAddedUntilItIsClosed(_ closing: Closing) async {
    let group = await openGroup()
    // Traps if the group has finished.
    for index in 0..<100 { await run(note("\(index)"), in: group) }
    #expect(group.isExecuting && group.operations.isEmpty)
    closing.close(group)
    await group.finished()
    #expect(journal.entries == (0..<100).map { "\($0)" })
    #expect(group.isCancelled == (closing == .byCancel))
    #expect(group.errors.count == (closing == .byFinishWithError ? 1 : 0))
  }

  @Test(arguments: Closing.allCases, [false, true])
  func closedWithoutMembers_finishes(_ closing: Closing, isSuspended: Bool) async {
    let group = await openGroup(suspended: isSuspended)
    closing.close(group)
    await group.drained()
    #expect(group.isFinished)
  }

  @Test(arguments: Closing.allCases)
  func closedBeforeItsStart_finishesWithItsLastMember(_ closing: Closing) async {
    let member = note("member")
    let group = GroupOperation([member])
    group.staysOpen = true
    closing.close(group)
    await queue.run(settling: [group])
    #expect(member.isFinished)
  }

  @Test(arguments: [Closing.byProperty, .byFinish, .byFinishWithError])
  func closedWithUnfinishedMembers_finishesAfterThem(_ closing: Closing) async {
    let held = HeldOperation()
    let group = await openGroup([held])
    await held.begun.opened()
    closing.close(group)
    group.addOperation(note("added after closing"))
    #expect(!group.isFinished)
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["added after closing"] && held.isSuccessful)
    #expect(group.failures.map { "\($0)" } == (closing == .byFinishWithError ? ["feed: closed"] : []))
  }

  @Test(arguments: [GroupOperation.ErrorPolicy.cancelOnFailure, .stopOnFailure])
  func aFailureClosesItUnlessItsPolicyIsToCollect(_ policy: GroupOperation.ErrorPolicy) async {
    let group = await openGroup()
    await run(NoteOperation("first", journal, failing: TestError("collected")), in: group)
    await run(note("second"), in: group)
    group.errorPolicy = policy
    group.addOperation(NoteOperation("third", journal, failing: TestError("closing")))
    await group.finished()
    #expect(journal.entries == ["first", "second", "third"] && !group.isCancelled && group.errors.count == 2)
  }

  @Test func itsTimeBeginsAtTheStartAndClosesIt() async {
    let (group, clock, late) = (GroupOperation(), ManualClock(), note("late"))
    (group.staysOpen, group.clock, group.timeout) = (true, clock, .seconds(10))
    await queue.begin(group)
    await clock.advance(by: .seconds(9), sleepers: 1)
    await run(note("member"), in: group)
    #expect(group.isExecuting)
    clock.advance(by: .seconds(1))
    #expect(group.isFinished && group.errors.count == 1)
    group.addOperation(late)
    #expect(late.isFinished && late.isCancelled && journal.entries == ["member"])
  }

  // MARK: Waiting for room

  @Test func tasksResumeAsSoonAsThereIsRoomForEach() async {
    let members = (0..<8).map { _ in HeldOperation() }
    let (group, waits) = (await openGroup(members), Journal<Int>())
    for count in 1...8 {
      for _ in 0..<2 {
        immediately {
          await group.waitForRoom(below: count)
          #expect(group.operations.count < count)
          waits.write(count)
        }
      }
    }
    await group.waitForRoom(below: 9)
    #expect(waits.entries.isEmpty)
    for (index, member) in members.enumerated() {
      member.finish()
      await waits.reaches(2 * (index + 1))
      #expect(waits.entries.suffix(2) == [8 - index, 8 - index])
    }
    #expect(group.engine.state.withLock { $0.roomWaiters.isEmpty })
    await group.ended()
    await group.waitForRoom(below: 1)
  }

  @Test func aTaskThatIsCancelledBeforeOrDuringTheWait_doesNotWait() async throws {
    let group = GroupOperation([AsyncOperation()])
    try await cancelledTask { await group.waitForRoom(below: 1) }.value
    let waiting = immediately { await group.waitForRoom(below: 1) }
    waiting.cancel()
    try await waiting.value
    #expect(group.engine.state.withLock { $0.roomWaiters.isEmpty })
  }

  @Test func aMemberThatWasNotAddedAfterAllMakesRoom() async {
    let held = HeldOperation()
    let group = await openGroup([held])
    // Counts as a second member for a moment, until it turns out to be in the group already.
    let (begun, end) = (Gate(), Gate())
    async let adding = onThread {
      while !end.isOpen {
        group.engine.add([held], skipping: .unnamed(except: []), to: group)
        begun.open()
      }
    }
    await begun.opened()
    for _ in 0..<20_000 { await group.waitForRoom(below: 2) }
    end.open()
    _ = await adding
    held.finish()
    await group.ended()
  }

  @Test func whatPassesThroughLeavesNothing() async {
    let (live, group) = (LiveCount(), await openGroup())
    await withTaskGroup { tasks in
      for _ in 0..<4 {
        tasks.addTask {
          var last: CountedOperation?
          for index in 0..<(isThorough ? 25_000 : 5_000) {
            await group.waitForRoom(below: 100)
            let next = CountedOperation(live)
            if let last, index.isMultiple(of: 2) { last ==> next }
            group.addOperation(next)
            last = next
          }
        }
      }
    }
    await group.waitForRoom(below: 1)
    let room = group.engine.state.withLock { $0.members.room }
    #expect(room <= 65 && group.isExecuting)
    // All of them, while the group goes on.
    await live.none()
    await group.ended()
  }

  // MARK: A queue of one's own

  @Test func aStartedGroup_executesAndEndsWithItsLastOwner() async {
    let (live, held) = (LiveCount(), HeldOperation())
    do {
      let group = CountedGroup(live, []).started()
      await run(note("first"), in: group)
      group.addOperations([held, note("last").waits(for: held)])
      await held.begun.opened()
    }
    #expect(live.alive == 1 && journal.entries == ["first"], "its members keep it alive")
    held.gate.open()
    await live.none()
    #expect(journal.entries == ["first", "last"])
  }

  @Test func aStartedGroupThatWasReleased_endsItsProgressAndFreesItsKeys() async {
    let domain = ExclusivityDomain()
    var updates: AsyncStream<Double>?
    do {
      let group = GroupOperation().exclusive("key", in: domain).started()
      updates = group.progressUpdates
      #expect(domain.holders(of: "key") == ["group operation"])
    }
    if let updates { for await _ in updates {} }
    #expect(domain.isUnused)
  }

  @Test func releasingAndAddingAtOnce_losesNoMember() async {
    let live = LiveCount()
    for _ in 0..<(isThorough ? 20_000 : 300) {
      let group = CountedGroup(live, []).started()
      let (first, second) = (CountedOperation(live), CountedOperation(live))
      async let adding: Void = onThreads(2) { group.addOperation($0 == 0 ? first : second) }
      await adding
      await first.finished()
      await second.finished()
    }
    await live.none()
  }

  @Test func aClockThatIsSetAfterTheStart_isThatOfLaterMembers() async {
    let (held, group) = (HeldOperation(), GroupOperation("group").started())
    group.clock = ManualClock()
    group.addOperation(held)
    await held.begun.opened()
    #expect(held.clock is ManualClock)
    held.gate.open()
    await group.ended()
  }

  @Test func theLimitAndThePolicyCanBeArguments() {
    let made = [
      GroupOperation("a", maxConcurrentOperationCount: 2, errorPolicy: .cancelDependents) { note("member") },
      GroupOperation([note("member")], maxConcurrentOperationCount: 2, errorPolicy: .cancelDependents).named("a"),
      GroupOperation("a", maxConcurrentOperationCount: 2, errorPolicy: .cancelDependents),
    ]
    #expect(made.map(\.maxConcurrentOperationCount) == [2, 2, 2] && made.map(\.name) == ["a", "a", "a"])
    #expect(made.allSatisfy { $0.errorPolicy == .cancelDependents } && made.map(\.operations.count) == [1, 1, 0])
    #expect(GroupOperation("b").name == "b" && GroupOperation().maxConcurrentOperationCount == -1)
  }

  @Test func aStallReportSaysThatItStaysOpen() async {
    let group = await openGroup()
    #expect(queue.stallReport().description.contains("“feed” stays open, and waits for members."))
    await group.ended()
  }
}
