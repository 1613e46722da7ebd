import Foundation
import OperationsTestSupport
import Soak
import Testing

@testable import Operations

/// Members that are added, raised or cancelled while their group starts or waits.
@Suite(.timeLimit(.minutes(5)))
struct WaitingMemberTests {
  private let queue = OperationQueue()

  // MARK: Adding at the start

  @Test func addedWhileAGroupRequestsItsKeys_everyMemberStarts() async {
    for _ in 0..<(isThorough ? 400 : 30) {
      let group = GroupOperation((0..<300).map { _ in AsyncOperation() })
      group.addOperation(AsyncOperation().exclusive("key", in: ExclusivityDomain()))
      group.staysOpen = true
      await onThreads(2) { thread in
        if thread == 0 { return queue.addOperation(group) }
        for _ in 0..<300 { group.addOperation(AsyncOperation()) }
      }
      group.staysOpen = false
      await group.finished()
    }
  }

  // MARK: Releasing

  @Test(arguments: [false, true])
  func cancelledOrRaisedWhileReady_aMemberIsNotRetainedByTheFinishedGroup(isRaised: Bool) async {
    let live = LiveCount()
    let group = GroupOperation()
    group.isSuspended = true
    do {
      let members = (0..<10).map { _ in CountedOperation(live) }
      group.addOperations(members)
      queue.addOperation(group)
      for member in members {
        if isRaised { member.queuePriority = .high }
        member.cancel()
      }
    }
    await group.finished()
    await live.none()
    #expect(group.isSuspended)
  }

  @Test func eventsAfterTheEnd_leaveNoEntries() {
    let (group, member) = (GroupOperation(), AsyncOperation())
    var schedule = GroupSchedule()
    _ = schedule.begin(group, in: GroupQueue(of: group), draining: false)
    schedule.endAddition()
    _ = schedule.endIfDone()
    #expect(!schedule.life.isRunning)
    schedule.putBack(member, ReadyList.Rank(priority: .low, number: 0))
    schedule.calledAgain(member, ReadyList.Rank(priority: .low, number: 0))
    schedule.wasCancelled(member, wasNotReady: true)
    _ = schedule.becameReady(member, .normal, takenNext: false)
    _ = schedule.wasGranted(member, takenNext: false)
    #expect(schedule.takeStaleEntries().isEmpty)
  }

  @Test func cancelledWhileReady_aMemberIsReleasedByTheSuspendedGroup() async {
    let (live, group, last) = (LiveCount(), GroupOperation(), AsyncOperation())
    group.isSuspended = true
    group.addOperations([last] + (0..<100).map { _ in CountedOperation(live).named("cancelled") })
    await queue.begin(group)
    #expect(group.cancelOperations(named: "cancelled") == 100)
    await live.none()
    #expect(group.isSuspended && group.operations == [last])
    group.isSuspended = false
    await group.finished()
  }
}
