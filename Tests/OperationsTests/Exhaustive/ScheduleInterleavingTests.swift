import Foundation
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

  // MARK: The values that a group is made of, one at a time

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
    for _ in 0..<10_000 {
      let index = list.append([named("passing")])
      _ = list.remove(at: index)
      #expect(list.room <= 65)
    }
    #expect(list.operations == [staying] && list.contains(0) && list[0] === staying)
    #expect(list.remove(at: 0) === staying && list.remove(at: 0) == nil && list.operations.isEmpty)
  }

  @Test func aMemberThatReturnsIsTheFirstOfItsPriority() {
    var schedule = GroupSchedule()
    schedule.begin()
    let members = ["first", "second", "returning"].map { AsyncOperation().named($0) }
    let urgent = AsyncOperation().named("urgent")
    urgent.queuePriority = .high
    for member in members[..<2] + [urgent] { _ = schedule.becameReady(ReadyMember(member), takenNext: false) }
    _ = schedule.becameReady(ReadyMember(members[2], isReturning: true), takenNext: false)
    #expect(schedule.takeReady().map(\.displayName) == ["urgent", "returning", "first", "second"])
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
    let afterwards = schedule.releaseSlot(takenNext: false)
    #expect(afterwards == .addRunner)
  }
}

/// A group's schedule, and what its engine has done about it.
struct ScheduleWorld: InterleavedWorld {
  struct Member: Hashable {
    /// Whether it finishes on another thread.
    var isAsynchronous = false
    /// Whether the group processes its result.
    var isFailing = false
    /// The member that it makes ready.
    var dependent: Int?
  }

  struct Deeds: Hashable {
    /// In the order in which they became ready.
    var ready: [Int] = []
    var unaccounted: [Int] = []
    var started: Set<Int> = []
    var finished: Set<Int> = []
    var settled = 0
    var coming = 0
    var ends = 0
    var runners = 0
    var isAccounting = false
    var isOpen = false
    /// Members that came after the end.
    var refused = 0
  }

  /// Only to be named.
  static let operations = (0..<4).map { _ in Operation() }

  let members: [Member]
  var schedule = GroupSchedule()
  var deeds = Deeds()
  var breach: String?

  init(_ members: [Member], limit: Int, staysOpen: Bool = false) {
    self.members = members
    schedule.limit = limit
    schedule.staysOpen = staysOpen
    deeds.isOpen = staysOpen
  }

  var phase: GroupSchedule.Phase { schedule.phase }
  var counts: [Int] { [schedule.unfinished, schedule.slotsTaken, schedule.unaccounted.count, schedule.ready.count] }
  var flags: [Bool] {
    [
      schedule.isRunnerWaiting, schedule.isAccounting, schedule.isWaitingForMembers, schedule.isWatched,
      schedule.isSuspended, schedule.isDraining, schedule.isFinishing, schedule.staysOpen,
    ]
  }

  mutating func check() {
    promise(deeds.ends <= 1, "the group ends twice")
    promise(deeds.runners <= 1, "two runners wait to begin")
    promise(schedule.slotsTaken == deeds.started.count - deeds.finished.count, "a slot was lost")
    promise(schedule.ready.count == deeds.ready.count, "a ready member was lost")
  }

  var breachAtEnd: String? {
    let forgotten = members.count - deeds.settled - deeds.refused
    if forgotten > 0 { return "\(forgotten) members were forgotten" }
    return deeds.ends == 1 || deeds.isOpen ? nil : "the group never ends"
  }
}

/// What the engine of a group does: each step is one critical section.
enum ScheduleStep: InterleavedStep {
  typealias Actor = InterleavedActor<Self>

  case beginAdding([Int])
  case append([Int])
  case becomeReady(Int, takenNext: Bool)
  case membersWereAdded, begin, suspend, resume, windDown
  /// The group is closed in one of these ways.
  case stopStayingOpen, finishGroup
  /// Adds members, unless the group has ended.
  case add([Int])
  /// Another thread does these.
  indirect case split([Self])
  case runnerBegins, take, endWatch
  case tellDependent(Int, here: Bool)
  case finish(Int, here: Bool)
  case settle, accountForMore

  func perform(in world: inout ScheduleWorld, by actor: inout Actor) {
    switch self {
    case .beginAdding(let members):
      world.schedule.beginAdding(members.count)
      world.deeds.coming += 1
    case .append(let members):
      world.schedule.append(members.map { ReadyMember(ScheduleWorld.operations[$0]) })
      world.deeds.ready += members
    case .becomeReady(let member, let takenNext):
      world.deeds.ready.append(member)
      let ready = ReadyMember(ScheduleWorld.operations[member])
      carryOut(world.schedule.becameReady(ready, takenNext: takenNext), &world, &actor)
    case .membersWereAdded:
      world.deeds.coming = max(0, world.deeds.coming - 1)
      let (addsRunner, isDone) = world.schedule.membersWereAdded()
      if addsRunner { addRunner(&world, &actor) }
      if isDone { end(&world) }
    case .split(let steps): actor.spawn(steps)
    case .begin:
      world.schedule.begin()
      actor.go(on: .membersWereAdded)
      world.deeds.coming += 1
    case .suspend: change(&world, &actor) { $0.isSuspended = true }
    case .resume: change(&world, &actor) { $0.isSuspended = false }
    case .windDown: close(&world, &actor) { $0.isDraining = true }
    case .stopStayingOpen: close(&world, &actor) { $0.staysOpen = false }
    case .finishGroup: close(&world, &actor) { $0.isFinishing = true }
    case .add(let members):
      if world.schedule.phase == .ended {
        world.deeds.refused += members.count
      } else {
        world.schedule.beginAdding(members.count)
        world.deeds.coming += 1
        actor.go(on: .append(members), .membersWereAdded)
      }
    case .runnerBegins:
      world.deeds.runners -= 1
      world.schedule.runnerBegan()
    case .take: take(&world, &actor)
    case .endWatch: if world.schedule.endWatch() { addRunner(&world, &actor) }
    case .tellDependent(let member, let here):
      if let dependent = world.members[member].dependent { actor.go(on: .becomeReady(dependent, takenNext: here)) }
    case .finish(let member, let here):
      world.deeds.finished.insert(member)
      carryOut(world.schedule.releaseSlot(takenNext: here), &world, &actor)
      guard world.members[member].isFailing else { return settle(&world) }
      let finished = FinishedMember(operation: ScheduleWorld.operations[member], index: member)
      if world.schedule.beginAccounting(for: finished) {
        world.promise(!world.deeds.isAccounting, "two look at results")
        world.deeds.isAccounting = true
        actor.go(on: .settle, .accountForMore)
      } else {
        world.deeds.unaccounted.append(member)
      }
    case .settle: settle(&world)
    case .accountForMore:
      let batch = world.schedule.nextToAccount()
      world.promise(batch.map(\.index) == world.deeds.unaccounted, "a result was lost")
      world.deeds.unaccounted = []
      world.deeds.isAccounting = !batch.isEmpty
      if batch.isEmpty, world.schedule.endIfDone() { end(&world) }
      if !batch.isEmpty { actor.go(on: batch.map { _ in .settle } + [.accountForMore]) }
    }
  }

  private func take(_ world: inout World, _ actor: inout Actor) {
    let hasSlot = world.schedule.limit < 0 || world.schedule.slotsTaken < world.schedule.limit
    guard case .run(let operation, let addsRunner, let isCancelled) = world.schedule.take() else { return }
    world.promise((hasSlot && !world.schedule.isSuspended) || isCancelled, "a member was handed out that must wait")
    let member = ScheduleWorld.operations.firstIndex { $0 === operation } ?? 0
    world.promise(world.deeds.ready.first == member, "a member was handed out before its turn")
    world.promise(world.deeds.started.insert(member).inserted, "a member was handed out twice")
    world.deeds.ready.removeFirst()
    let here = !world.members[member].isAsynchronous
    let steps: [Self] = [.tellDependent(member, here: here), .finish(member, here: here)]
    if !here { actor.spawn(steps) }
    if addsRunner { addRunner(&world, &actor) }
    actor.go(on: here ? steps + [.take] : [.take])
  }

  private func addRunner(_ world: inout World, _ actor: inout Actor) {
    world.deeds.runners += 1
    actor.spawn([.runnerBegins, .take])
  }

  private func carryOut(_ help: GroupSchedule.Help, _ world: inout World, _ actor: inout Actor) {
    switch help {
    case .none: return
    case .addRunner: addRunner(&world, &actor)
    case .watch: actor.spawn([.endWatch])
    }
  }

  private func change(_ world: inout World, _ actor: inout Actor, _ change: (inout GroupSchedule) -> Void) {
    change(&world.schedule)
    if world.schedule.addRunnerIfUseful() { addRunner(&world, &actor) }
    if world.schedule.endIfDone() { end(&world) }
  }

  private func close(_ world: inout World, _ actor: inout Actor, _ change: (inout GroupSchedule) -> Void) {
    world.deeds.isOpen = false
    self.change(&world, &actor, change)
  }

  private func settle(_ world: inout World) {
    world.deeds.settled += 1
    world.schedule.accounted()
    if world.schedule.endIfDone() { end(&world) }
  }

  private func end(_ world: inout World) {
    world.deeds.ends += 1
    world.promise(!world.deeds.isOpen, "the group ends while it is open")
    world.promise(world.deeds.coming == 0, "the group ends while members come")
    world.promise(!world.deeds.isAccounting, "the group ends before it has seen the results")
    world.promise(world.deeds.settled == world.deeds.started.count, "the group ends before its members")
  }
}
