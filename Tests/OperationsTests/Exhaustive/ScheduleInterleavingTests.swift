import Soak
import Testing

@testable import Operations

/// A group's schedule, with every order of what its runners, its members and those who change it do at once.
struct ScheduleInterleavingTests {
  private typealias Walk = Interleavings<ScheduleStep>
  private typealias Member = ScheduleWorld.Member

  private let changes: [(name: String, steps: [ScheduleStep])] = [
    ("pauser", [.suspend, .resume]), ("canceller", [.windDown]),
  ]

  private func begun(_ members: [Int]) -> [ScheduleStep] {
    [.beginAdding(members), .append(members), .membersWereAdded, .begin]
  }

  @Test func everyMemberIsHandedOutOnceAndTheGroupEndsOnce() {
    var walk = Walk()
    for limit in [-1, 1] {
      for isAsynchronous in [false, true] {
        for isFailing in [false, true] {
          let member = Member(isAsynchronous: isAsynchronous, isFailing: isFailing)
          let members = [member, Member(isAsynchronous: true, isFailing: true)]
          for change in changes {
            walk.walk(ScheduleWorld(members, limit: limit), [("engine", begun([0, 1])), change])
          }
        }
      }
    }
    walk.expectSuccess(states: 8_000, schedules: 200_000_000)
  }

  @Test func whatBecomesReadyInARunnerIsNotForgotten() {
    var walk = Walk()
    for limit in [-1, 1] {
      for isAsynchronous in [false, true] {
        let first = Member(isAsynchronous: isAsynchronous, dependent: 1)
        let members = [first, Member(isFailing: true)]
        let beginning: [ScheduleStep] = [.beginAdding([0, 1]), .append([0]), .membersWereAdded, .begin]
        for change in changes { walk.walk(ScheduleWorld(members, limit: limit), [("engine", beginning), change]) }
      }
    }
    // With three there is somebody else for a runner to take.
    walk.walk(
      ScheduleWorld([Member(dependent: 1), Member(), Member(isFailing: true)], limit: 2),
      [("engine", [.beginAdding([0, 1, 2]), .append([0, 2]), .membersWereAdded, .begin])]
    )
    walk.expectSuccess(states: 4_000, schedules: 300_000_000)
  }

  @Test func aGroupDoesNotEndWhileMembersCome() {
    var walk = Walk()
    let members = [Member(isAsynchronous: true), Member(isFailing: true)]
    let adder: [ScheduleStep] = [.becomeReady(1, takenNext: false), .membersWereAdded]
    for limit in [-1, 1] {
      for change in changes {
        // Whoever adds to a group that has ended is refused: so the first step is the same thread's.
        let engine: [ScheduleStep] = [
          .beginAdding([0]), .append([0]), .membersWereAdded, .beginAdding([1]), .split(adder), .begin,
        ]
        walk.walk(ScheduleWorld(members, limit: limit), [("engine", engine), change])
      }
    }
    walk.expectSuccess(states: 10_000, schedules: 10_000_000_000)
  }

  @Test func anOpenGroupEndsWhenItIsClosed() {
    var walk = Walk()
    let closings: [(name: String, steps: [ScheduleStep])] = [
      ("nobody", []), ("closer", [.stopStayingOpen]), ("finisher", [.finishGroup]), ("canceller", [.windDown]),
      ("both", [.split([.windDown]), .stopStayingOpen]),
    ]
    let beginnings: [[ScheduleStep]] = [[.begin], [.suspend, .begin, .resume]]
    let members = [Member(isAsynchronous: true)] + (isThorough ? [Member(isFailing: true)] : [])
    for members in [[], [members[0]], members] {
      let adder: [ScheduleStep] = members.indices.map { .add([$0]) }
      for beginning in beginnings {
        for closing in closings {
          let world = ScheduleWorld(members, limit: 1, staysOpen: true)
          walk.walk(world, [("engine", beginning), ("adder", adder), closing])
        }
      }
    }
    walk.expectSuccess(states: 3_000, schedules: 1_000_000)
  }

  @Test func aGroupThatBeginsSuspendedAndEmptyEndsWhenItIsResumed() {
    var walk = Walk()
    walk.walk(ScheduleWorld([], limit: -1), [("engine", [.suspend, .split([.resume]), .begin])])
    for steps: [ScheduleStep] in [[.begin, .stopStayingOpen], [.split([.stopStayingOpen, .resume]), .begin]] {
      walk.walk(ScheduleWorld([], limit: -1, staysOpen: true), [("engine", [.suspend] + steps)])
    }
    walk.expectSuccess(states: 20, schedules: 6)
  }
}
