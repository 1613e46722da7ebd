import Foundation
import Testing

@testable import Operations

/// The values a group's engine is made of.
struct GroupPartsTests {
  private func named(_ name: String) -> Operation { Operation().named(name) }

  @Test func theMemberListKeepsItsIndexesWhateverIsTakenOut() {
    var list = MemberList()
    var generator = SystemRandomNumberGenerator()
    var alive: [Int: Operation] = [:]
    for _ in 0..<300 {
      let operations = (0..<Int.random(in: 1...5, using: &generator)).map { named("\($0)") }
      let index = list.append(operations[...])
      for (offset, operation) in operations.enumerated() { alive[index + offset] = operation }
      while alive.count > 20, let index = alive.keys.randomElement(using: &generator) {
        let removed = list.remove(at: index)
        #expect(removed === alive.removeValue(forKey: index))
      }
      #expect(list.count == alive.count)
      #expect(list.operations == alive.keys.sorted().map { alive[$0]! })
    }
  }

  @Test func theMemberListDoesNotGrowWithWhatPassesThrough() {
    var list = MemberList()
    let staying = named("staying")
    _ = list.append([staying])
    for _ in 0..<100_000 {
      let index = list.append([named("passing")])
      _ = list.remove(at: index)
      #expect(list.room <= 65)
    }
    #expect(list.operations == [staying] && list.contains(0) && list[0] === staying)
    #expect(list.remove(at: 0) === staying && list.remove(at: 0) == nil && list.operations.isEmpty)
  }

  @Test func aRunnerIsAddedOnlyIfItIsOfUse() {
    var schedule = GroupSchedule()
    schedule.limit = 1
    schedule.beginAdding(2)
    let early = schedule.becameReady(ReadyMember(named("a")), takenNext: false)
    #expect(early == .none, "the group has not begun")
    schedule.begin()
    let first = schedule.addRunnerIfUseful()
    let second = schedule.becameReady(ReadyMember(named("b")), takenNext: false)
    #expect(first && second == .none, "one is waiting to begin")
    schedule.runnerBegan()
    guard case .run(_, let addsRunner, false) = schedule.take(), case .stop = schedule.take() else {
      Issue.record("nothing to run, or beyond the limit")
      return
    }
    #expect(!addsRunner, "the limit is reached")
    let afterwards = schedule.freeSlot(takenNext: false)
    #expect(afterwards == .addRunner)
  }
}
