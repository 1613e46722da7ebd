import Soak
import Testing

@testable import Operations

/// A group's schedule, with every order of what its runners, its members and its callers do at once.
struct ScheduleInterleavingTests {
  private typealias Walk = Interleavings<ScheduleStep>
  private typealias Member = ScheduleWorld.Member

  private let changes: [[ScheduleStep]] = [[.suspend, .resume], [.windDown]]

  /// Adds the members, of which some are ready, and begins.
  private func beginning(_ members: [Int], ready: [Int]) -> [ScheduleStep] {
    [.beginAdding(members), .append(ready), .membersWereAdded, .begin]
  }

  @Test func readyMembers_areHandedOutOnceAndTheGroupEndsOnce() {
    var walk = Walk()
    for limit in [-1, 1] {
      for isAsynchronous in [false, true] {
        for isFailing in [false, true] {
          let member = Member(isAsynchronous: isAsynchronous, isFailing: isFailing)
          let world = ScheduleWorld([member, Member(isAsynchronous: true, isFailing: true)], limit: limit)
          for change in changes { walk.walk(world, [beginning([0, 1], ready: [0, 1]), change]) }
        }
      }
    }
    walk.expectSuccess(states: 8_000, schedules: 200_000_000)
  }

  @Test func memberThatBecomesReadyInARunner_isNotForgotten() {
    var walk = Walk()
    for limit in [-1, 1] {
      for isAsynchronous in [false, true] {
        let first = Member(isAsynchronous: isAsynchronous, dependent: 1)
        let world = ScheduleWorld([first, Member(isFailing: true)], limit: limit)
        for change in changes { walk.walk(world, [beginning([0, 1], ready: [0]), change]) }
      }
    }
    // With three there is another member for a runner to take.
    let world = ScheduleWorld([Member(dependent: 1), Member(), Member(isFailing: true)], limit: 2)
    walk.walk(world, [beginning([0, 1, 2], ready: [0, 2])])
    walk.expectSuccess(states: 4_000, schedules: 300_000_000)
  }

  @Test func groupToWhichMembersAreBeingAdded_doesNotEnd() {
    var walk = Walk()
    // An addition to a group that has ended is refused, so the first step is the same thread's.
    let engine: [ScheduleStep] = [
      .beginAdding([0]), .append([0]), .membersWereAdded, .beginAdding([1]),
      .split([.becomeReady(1, takenNext: false), .membersWereAdded]), .begin,
    ]
    for limit in [-1, 1] {
      let world = ScheduleWorld([Member(isAsynchronous: true), Member(isFailing: true)], limit: limit)
      for change in changes { walk.walk(world, [engine, change]) }
    }
    walk.expectSuccess(states: 10_000, schedules: 10_000_000_000)
  }

  @Test func openGroup_endsWhenItIsClosed() {
    var walk = Walk()
    let closings: [[ScheduleStep]] = [
      [], [.stopStayingOpen], [.finishGroup], [.windDown], [.split([.windDown]), .stopStayingOpen],
    ]
    let members = [Member(isAsynchronous: true)] + (isThorough ? [Member(isFailing: true)] : [])
    for members in [[], [members[0]], members] {
      let world = ScheduleWorld(members, limit: 1, staysOpen: true)
      for beginning: [ScheduleStep] in [[.begin], [.suspend, .begin, .resume]] {
        for closing in closings { walk.walk(world, [beginning, members.indices.map { .add([$0]) }, closing]) }
      }
    }
    walk.expectSuccess(states: 3_000, schedules: 1_000_000)
  }

  @Test func groupThatBeginsSuspendedAndEmpty_endsWhenItIsResumed() {
    var walk = Walk()
    walk.walk(ScheduleWorld([], limit: -1), [[.suspend, .split([.resume]), .begin]])
    for steps: [ScheduleStep] in [[.begin, .stopStayingOpen], [.split([.stopStayingOpen, .resume]), .begin]] {
      walk.walk(ScheduleWorld([], limit: -1, staysOpen: true), [[.suspend] + steps])
    }
    walk.expectSuccess(states: 20, schedules: 6)
  }
}
