import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

@Suite(.timeLimit(.minutes(5)))
struct GroupCancellationTests: NotingSuite {
  private let queue = OperationQueue()
  private let domain = ExclusivityDomain()
  let journal = Journal<String>()

  /// Groups around a leaf, the innermost first.
  private func nested(_ depth: Int) -> [GroupOperation] {
    var groups = [GroupOperation([AsyncOperation(), BlockOperation {}])]
    while groups.count < depth { groups.append(GroupOperation([groups[groups.count - 1], AsyncOperation()])) }
    return groups
  }

  @Test(arguments: [1, 15, 16, 17, 100, isThorough ? 20_000 : 4_000])
  func nestedGroupsAreCancelledWhenCancelReturns(depth: Int) async throws {
    try await onSmallStack {
      let (groups, others, levels) = (nested(depth), nested(depth), Journal<Int>())
      for (level, group) in groups.enumerated() { group.addObserver(didCancel: { _ in levels.write(level) }) }
      groups[0].addObserver(didCancel: { _ in
        others[depth - 1].cancel()
        #expect(others.flatMap(\.operations).allSatisfy { $0.isCancelled })
      })
      groups[depth - 1].cancel()
      #expect((groups + others).flatMap(\.operations).allSatisfy { $0.isCancelled })
      #expect(levels.entries == Array((0..<depth).reversed()), "each group before its members")
    }
  }

  @Test func noMemberExecutesThoughTheGroupStartsWhileItIsBeingCancelled() async {
    let (first, second, secondHasFinished) = (note("first"), note("second"), DispatchSemaphore(value: 0))
    let group = GroupOperation([first, second])
    // It delays the cancellation, which has not reached the second member yet.
    first.addObserver(didCancel: { _ in secondHasFinished.wait() })
    second.addObserver(didFinish: { _ in secondHasFinished.signal() })
    DispatchQueue.global().async { group.cancel() }
    await poll { group.isCancelled }
    await queue.run(settling: [group])
    #expect(journal.entries.isEmpty && second.isCancelled)
  }

  @Test(arguments: [false, true], [false, true])
  func aPlainMemberThatWaitsIsFinishedToo(whileRunning: Bool, isAddedLater: Bool) async {
    let (never, live) = (BlockOperation {}, LiveCount())
    do {
      let (held, member) = (HeldOperation(), BlockOperation(block: live.counted { journal.write("member") }))
      never ==> member
      let group = GroupOperation(isAddedLater ? [held] : [held, member])
      if whileRunning { await queue.add(group, until: held.begun) }
      group.cancel()
      if isAddedLater { group.addOperation(member) }
      held.gate.open()
      if !whileRunning { queue.addOperation(group) }
      await group.finished()
      #expect(member.isFinished && member.isCancelled && journal.entries.isEmpty)
    }
    // The wait retains neither the member nor its dependency.
    await live.none()
    // Foundation uses its pointer to the member at this moment.
    never.start()
  }

  @Test func aGroupThatIsReleasedUnstartedLetsGoOfWhatItsPlainMembersWaitFor() async {
    let live = LiveCount()
    do { _ = GroupOperation([BlockOperation(block: live.counted()) ==> BlockOperation {}]) }
    await live.none()
  }

  @Test func aNewcomerOfAGroupThatEndsWhileItIsBeingCancelledFinishesUnexecuted() async {
    let (held, newcomer) = (HeldOperation(), note("newcomer"))
    let group = GroupOperation([held])
    group.addObserver(didCancel: { _ in
      // The members have not been cancelled yet, and the last of them finishes by itself.
      held.gate.open()
      #expect(group.isFinished)
      group.addOperation(newcomer)
    })
    await queue.add(group, until: held.begun)
    group.cancel()
    #expect(newcomer.isCancelled && newcomer.isFinished && journal.entries.isEmpty)
  }

  // MARK: Cancelling a member before it starts

  /// What keeps a member from starting.
  enum Obstacle: CaseIterable, Sendable { case limit, suspension, dependency, key }

  enum Candidate: CaseIterable, Sendable { case operation, nestedGroup, cancelledBefore }

  @Test(arguments: Obstacle.allCases, Candidate.allCases)
  func cancelledMember_finishesAtOnce(_ obstacle: Obstacle, _ candidate: Candidate) async {
    let (held, events) = (HeldOperation().exclusive("a", in: domain), Journal<String>())
    let group = await queue.add(GroupOperation([held]), until: held.begun)
    let member = candidate == .nestedGroup ? GroupOperation([note("inner")]).named("member") : note("member")
    switch obstacle {
    case .limit: group.maxConcurrentOperationCount = 1
    case .suspension: group.isSuspended = true
    case .dependency: held ==> member
    case .key: member.exclusive("a", in: domain)
    }
    member.addObserver(didCancel: { _ in events.write("cancel") }, didFinish: { _ in events.write("finish") })
    let after = note("after")
    queue.addOperation(member ==> after)
    if candidate == .cancelledBefore { member.cancel() }
    group.addOperation(member)
    if candidate != .cancelledBefore {
      if obstacle == .key { await poll { domain.waiting(for: "a") == ["member"] } }
      #expect(!member.isFinished)
      member.cancel()
    }
    await member.finished()
    await after.finished()
    #expect(events.entries == ["cancel", "finish"] && member.errors.isEmpty)
    #expect(held.isExecuting && domain.waiting(for: "a").isEmpty)
    group.isSuspended = false
    await group.finished(opening: held.gate)
    #expect(journal.entries == ["after"] && group.isSuccessful)
  }

  // MARK: Releasing

  /// In one case, another member remains in the group. Otherwise the group finishes.
  @Test(arguments: [false, true], [false, true])
  func cancelledWhileReady_aMemberIsReleasedByTheSuspendedGroup(isRaised: Bool, isOnlyOne: Bool) async {
    let (live, group, other) = (LiveCount(), GroupOperation(), AsyncOperation())
    group.isSuspended = true
    do {
      let members = (0..<100).map { _ in CountedOperation(live) }
      group.addOperations(members)
      if !isOnlyOne { group.addOperation(other) }
      await queue.begin(group)
      for member in members {
        if isRaised { member.queuePriority = .high }
        member.cancel()
      }
    }
    await live.none()
    #expect(group.isSuspended && group.operations == (isOnlyOne ? [] : [other]))
    group.isSuspended = isOnlyOne
    await group.finished()
  }

  @Test func eventsAfterTheEnd_leaveNoEntries() {
    let (group, member) = (GroupOperation(), AsyncOperation())
    var schedule = GroupSchedule()
    _ = schedule.start(group, in: GroupQueue(of: group), draining: false)
    schedule.endAddition()
    _ = schedule.endIfDone()
    #expect(!schedule.life.isRunning)
    schedule.putBack(member, ReadyList.Rank(priority: -4, ticket: 0))
    schedule.wasCancelled(member, wasNotReady: true)
    schedule.becameReady(member, .normal)
    #expect(schedule.takeStaleEntries().isEmpty)
  }
}
