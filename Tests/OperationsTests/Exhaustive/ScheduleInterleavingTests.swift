import Foundation
import Soak
import Testing

@testable import Operations

/// A group's schedule, with every order of what its runners, its members and its callers do at once.
struct ScheduleInterleavingTests {
  private typealias Member = ScheduleWorld.Member

  private var walk = Interleavings<ScheduleStep>()
  private let changes: [[ScheduleStep]] = [[.suspend, .resume], [.windDown]]

  /// Adds the members, of which some are ready, and begins.
  private func beginning(_ members: [Int], ready: [Int]) -> [ScheduleStep] {
    [.beginAdding(members), .endAdding(members, ready: ready), .begin]
  }

  @Test mutating func readyMembers_areHandedOutOnceAndTheGroupEndsOnce() {
    for limit in [-1, 1] {
      for isAsynchronous in [false, true] {
        for isFailing in [false, true] {
          let member = Member(isAsynchronous: isAsynchronous, isFailing: isFailing)
          let world = ScheduleWorld([member, Member(isAsynchronous: true, isFailing: true)], limit: limit)
          for change in changes { walk.walk(world, [beginning([0, 1], ready: [0, 1]), change]) }
        }
      }
    }
    walk.expectSuccess(states: 8_000, schedules: 100_000_000)
  }

  @Test mutating func memberThatBecomesReadyInARunner_isNotForgotten() {
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

  @Test mutating func memberThatIsCancelled_isHandedOutAtOnceAndOnlyOnce() {
    for change: [ScheduleStep] in [[.cancel(1)], [.suspend, .cancel(0), .resume], [.cancel(1), .windDown]] {
      for ready in [[0, 1], [0]] {
        let first = Member(isAsynchronous: true, dependent: ready.count == 1 ? 1 : nil)
        let world = ScheduleWorld([first, Member(isFailing: true)], limit: 1)
        walk.walk(world, [beginning([0, 1], ready: ready), change])
      }
    }
    // Nothing else runs, and the suspension does not end.
    let suspended = ScheduleWorld([Member()], limit: 1)
    walk.walk(suspended, [[.suspend] + beginning([0], ready: [0]) + [.cancel(0)]])
    walk.expectSuccess(states: 1_000, schedules: 10_000)
  }

  @Test func aWeakerRequestToEndHasNoEffect() {
    var schedule = GroupSchedule()
    let requests: [GroupSchedule.EndRequest] = [.drain, .finish, .cancel, .cancel, .drain]
    let areNew = requests.map { schedule.request($0) }
    #expect(areNew == [true, false, true, false, false] && schedule.isDraining)
  }

  @Test func whileSeveralMembersArrive_noneStarts() {
    var schedule = GroupSchedule()
    let member = AsyncOperation()
    _ = ScheduleWorld.begin(&schedule)
    schedule.startObstacles += 1
    schedule.becameReady(member, .normal)
    let (none, early) = (schedule.requestRunner(), schedule.handOutNext())
    schedule.startObstacles -= 1
    let (runner, next) = (schedule.requestRunner(), schedule.handOutNext())
    #expect(none == .none && early == nil && runner == .addRunner && next?.member === member)
  }

  @Test mutating func groupToWhichMembersAreBeingAdded_doesNotEnd() {
    // An addition to a group that has ended is refused, so the first step is the same thread's.
    for added in [[1], [1, 2]] {
      let end = ScheduleStep.endAdding(added, ready: Array(added.dropFirst()))
      let engine: [ScheduleStep] = [
        .beginAdding([0]), .endAdding([0], ready: [0]), .beginAdding(added),
        .split([.becomeReady(1, runnerTakesNext: false)]), .split([end]), .begin,
      ]
      for limit in isThorough ? [-1, 1] : [1] {
        let members = [Member(isAsynchronous: true), Member(isFailing: true), Member()]
        let world = ScheduleWorld(Array(members[...added.count]), limit: limit)
        for change in isThorough || added.count == 1 ? changes : [[.windDown]] { walk.walk(world, [engine, change]) }
      }
    }
    walk.expectSuccess(states: 10_000, schedules: 10_000_000_000)
  }

  @Test mutating func openGroup_endsWhenItIsClosed() {
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
    walk.expectSuccess(states: 2_000, schedules: 1_000_000)
  }

  @Test mutating func groupThatBeginsSuspendedAndEmpty_endsWhenItIsResumed() {
    walk.walk(ScheduleWorld([], limit: -1), [[.suspend, .split([.resume]), .begin]])
    for steps: [ScheduleStep] in [[.begin, .stopStayingOpen], [.split([.stopStayingOpen, .resume]), .begin]] {
      walk.walk(ScheduleWorld([], limit: -1, staysOpen: true), [[.suspend] + steps])
    }
    walk.expectSuccess(states: 20, schedules: 6)
  }
}

/// A group's schedule, and what its engine has done about it.
struct ScheduleWorld: InterleavedWorld {
  struct Member: Hashable {
    var isAsynchronous = false
    var isFailing = false
    var dependent: Int?
  }

  struct Deeds: Hashable {
    /// In the order in which they became ready.
    var ready: [Int] = []
    var waitingResults: [Int] = []
    /// In the order in which they were cancelled.
    var cancelled: [Int] = []
    var wereCancelled: Set<Int> = []
    var started: Set<Int> = []
    var finished: Set<Int> = []
    var slots: Set<Int> = []
    var processed = 0
    var coming = 0
    /// By calls that add several.
    var beingAdded: Set<Int> = []
    var ends = 0
    var runners = 0
    var isProcessing = false
    var isOpen = false
    /// Members that came after the end.
    var refused = 0
  }

  /// Only to be named.
  static let operations = (0..<4).map { _ in AsyncOperation() }
  private static let group = GroupOperation()
  private static let queue = GroupQueue(of: group)

  static func begin(_ schedule: inout GroupSchedule, draining: Bool = false) -> Bool? {
    schedule.start(group, in: queue, draining: draining)
  }

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

  mutating func beginAdding(_ members: [Int]) {
    schedule.beginAddition(of: members.count)
    if members.count > 1 { schedule.startObstacles += 1 }
    deeds.coming += 1
  }

  var state: [AnyHashable] {
    [
      schedule.life.isGathering, schedule.life.isUnderway, schedule.openness, schedule.endRequest, schedule.isSuspended,
      schedule.unfinishedMembers, schedule.additions, schedule.startObstacles, schedule.waitingResults?.count,
      schedule.ready.count, schedule.ready.slotsInUse, schedule.isRunnerRequested, schedule.isRunnerWatched, deeds,
    ]
  }

  mutating func check() {
    promise(deeds.ends <= 1, "the group ends twice")
    promise(deeds.runners <= 1, "two runners wait to begin")
    promise(schedule.ready.slotsInUse == deeds.slots.count, "a slot was lost")
    promise(schedule.ready.count == deeds.ready.count, "a ready member was lost")
    promise(schedule.cancelled.count == deeds.cancelled.count, "a cancelled member was lost")
  }

  var breachAtEnd: String? {
    let forgotten = members.count - deeds.processed - deeds.refused
    if forgotten > 0 { return "\(forgotten) members were forgotten" }
    return deeds.ends == 1 || deeds.isOpen ? nil : "the group never ends"
  }
}

/// What the engine of a group does: each step is one critical section.
enum ScheduleStep: InterleavedStep {
  typealias Actor = InterleavedActor<Self>

  case beginAdding([Int])
  case endAdding([Int], ready: [Int] = [])
  case becomeReady(Int, runnerTakesNext: Bool)
  case cancel(Int)
  case begin, suspend, resume, windDown
  /// The group is closed in one of these ways.
  case stopStayingOpen, finishGroup
  /// Adds members, unless the group has ended.
  case add([Int])
  /// Another thread does these.
  indirect case split([Self])
  case startMembers
  case takeAnywhere(Int)
  case runnerBegins, take, endWatch
  case tellDependent(Int, here: Bool)
  /// Finishes at once, or after the group has processed the result.
  case settle(Int, here: Bool)
  case finish(Int, here: Bool)
  case processMore

  func perform(in world: inout ScheduleWorld, by actor: inout Actor) {
    switch self {
    case .beginAdding(let members):
      world.beginAdding(members)
      if members.count > 1 { world.deeds.beingAdded.formUnion(members) }
    case .endAdding(let members, let ready):
      world.deeds.coming -= 1
      world.deeds.beingAdded.subtract(members)
      world.deeds.ready += ready
      for member in ready { world.schedule.ready.append(ScheduleWorld.operations[member], .normal) }
      world.schedule.endAddition()
      if members.count > 1 { world.schedule.startObstacles -= 1 }
      carryOut(world.schedule.requestRunner(), &world, &actor)
      endIfDone(&world)
    case .cancel(let member):
      guard !world.deeds.started.contains(member), world.deeds.wereCancelled.insert(member).inserted else { return }
      if world.deeds.ready.contains(member), world.schedule.isDraining { return }
      world.deeds.cancelled.append(member)
      let (operation, isReady) = (ScheduleWorld.operations[member], world.deeds.ready.contains(member))
      world.deeds.ready.removeAll { $0 == member }
      change(&world, &actor) { $0.wasCancelled(operation, wasNotReady: !isReady) }
    case .becomeReady(let member, _) where world.deeds.wereCancelled.contains(member): return
    case .becomeReady(let member, let runnerTakesNext):
      world.deeds.ready.append(member)
      let operation = ScheduleWorld.operations[member]
      world.schedule.becameReady(operation, .normal)
      carryOut(world.schedule.requestRunner(runnerTakesNext: runnerTakesNext), &world, &actor)
    case .split(let steps): actor.spawn(steps)
    case .begin:
      let needsPermits = ScheduleWorld.begin(&world.schedule)
      world.promise(needsPermits == false, "the group begins twice, or needs permits")
      actor.go(on: .endAdding([]))
      world.deeds.coming += 1
    case .suspend: change(&world, &actor) { $0.isSuspended = true }
    case .resume: change(&world, &actor) { $0.isSuspended = false }
    case .windDown: close(&world, &actor) { $0.request(.drain) }
    case .stopStayingOpen: close(&world, &actor) { $0.staysOpen = false }
    case .finishGroup: close(&world, &actor) { $0.request(.finish) }
    case .add(let members):
      if world.schedule.life.isOver {
        world.deeds.refused += members.count
      } else {
        world.beginAdding(members)
        actor.go(on: .endAdding(members, ready: members))
      }
    case .runnerBegins:
      world.deeds.runners -= 1
      world.schedule.isRunnerRequested = false
    case .startMembers:
      guard let next = world.schedule.nextForRequestedRunner() else {
        world.deeds.runners -= 1
        return
      }
      let member = ScheduleWorld.operations.firstIndex { $0 === next } ?? 0
      let isAnywhere = world.members[member].isAsynchronous && !world.deeds.wereCancelled.contains(member)
      actor.go(on: isAnywhere ? [.takeAnywhere(member)] : [.runnerBegins, .take])
    case .takeAnywhere(let member): handOut(member, &world, &actor)
    case .take: handOut(nil, &world, &actor)
    case .endWatch: carryOut(world.schedule.endWatch(), &world, &actor)
    case .tellDependent(let member, let here):
      if let dependent = world.members[member].dependent {
        actor.go(on: .becomeReady(dependent, runnerTakesNext: here))
      }
    case .settle(let member, let here):
      guard world.members[member].isFailing else { return actor.go(on: Self.steps(of: member, here: here)) }
      if world.schedule.beginCollecting(ScheduleWorld.operations[member]) {
        world.promise(!world.deeds.isProcessing, "two look at results")
        world.deeds.isProcessing = true
        actor.go(on: Self.steps(of: member, here: here) + [.processMore])
      } else {
        world.deeds.waitingResults.append(member)
      }
    case .finish(let member, let here):
      world.deeds.finished.insert(member)
      if world.deeds.slots.remove(member) != nil { world.schedule.ready.returnSlot() }
      carryOut(world.schedule.requestRunner(runnerTakesNext: here), &world, &actor)
      world.deeds.processed += 1
      world.schedule.memberWasRemoved()
      endIfDone(&world)
    case .processMore:
      let batch = world.schedule.takeWaitingResults()
      let members = batch.compactMap { finished in ScheduleWorld.operations.firstIndex { $0 === finished } }
      world.promise(members == world.deeds.waitingResults, "a result was lost")
      world.deeds.waitingResults = []
      world.deeds.isProcessing = !batch.isEmpty
      if batch.isEmpty { endIfDone(&world) }
      if !batch.isEmpty { actor.go(on: members.flatMap { Self.steps(of: $0, here: false) } + [.processMore]) }
    }
  }

  private static func steps(of member: Int, here: Bool) -> [Self] {
    [.tellDependent(member, here: here), .finish(member, here: here)]
  }

  /// A runner takes any member. The thread that found a member a place takes only that one, and then looks for the next.
  private func handOut(_ only: Int?, _ world: inout World, _ actor: inout Actor) {
    let hasSlot = world.schedule.limit < 0 || world.schedule.ready.slotsInUse < world.schedule.limit
    let again = only == nil ? Self.take : .startMembers
    let taken =
      if let only { world.schedule.handOut(ScheduleWorld.operations[only]) } else { world.schedule.handOutNext() }
    guard let next = taken else {
      if only != nil { actor.go(on: .runnerBegins, .take) }
      return
    }
    let runner = next.runner
    let mayStart = (hasSlot && !world.schedule.isSuspended) || world.schedule.isDraining || next.rank == nil
    world.promise(mayStart, "a member was handed out that must wait")
    world.promise(world.deeds.beingAdded.isEmpty, "a member was handed out in the middle of an addition")
    let member = ScheduleWorld.operations.firstIndex { $0 === next.member } ?? 0
    let list = next.rank == nil ? \ScheduleWorld.Deeds.cancelled : \.ready
    world.promise(world.deeds[keyPath: list].first == member, "a member was handed out before its turn")
    world.deeds[keyPath: list].removeFirst()
    if !world.deeds.started.insert(member).inserted {
      // A member that was cancelled while it was ready has finished without a slot. The core refuses the second start.
      world.promise(world.deeds.wereCancelled.contains(member), "a member was handed out twice")
      carryOut(runner, &world, &actor)
      if next.hasSlot {
        world.schedule.ready.returnSlot()
        carryOut(world.schedule.requestRunner(), &world, &actor)
      }
      endIfDone(&world)
      return actor.go(on: again)
    }
    if next.hasSlot { world.deeds.slots.insert(member) }
    let here = !world.members[member].isAsynchronous
    if !here { actor.spawn([.settle(member, here: false)]) }
    carryOut(runner, &world, &actor)
    actor.go(on: here ? [.settle(member, here: true), again] : [again])
  }

  private func carryOut(_ request: GroupSchedule.RunnerRequest, _ world: inout World, _ actor: inout Actor) {
    switch request {
    case .none: return
    case .addRunner:
      world.deeds.runners += 1
      actor.spawn([.startMembers])
    case .watch: actor.spawn([.endWatch])
    }
  }

  private func change(_ world: inout World, _ actor: inout Actor, _ change: (inout GroupSchedule) -> Void) {
    change(&world.schedule)
    carryOut(world.schedule.requestRunner(), &world, &actor)
    endIfDone(&world)
  }

  private func close(_ world: inout World, _ actor: inout Actor, _ change: (inout GroupSchedule) -> Void) {
    world.deeds.isOpen = false
    self.change(&world, &actor, change)
  }

  private func endIfDone(_ world: inout World) {
    guard case .end = world.schedule.endIfDone() else { return }
    world.deeds.ends += 1
    world.promise(!world.deeds.isOpen, "the group ends while it is open")
    world.promise(world.deeds.coming == 0, "the group ends while members come")
    world.promise(!world.deeds.isProcessing, "the group ends before it has seen the results")
    world.promise(world.deeds.processed == world.deeds.started.count, "the group ends before its members")
  }
}

extension ReadyList {
  /// Appends a member that arrives now, unless it has a number.
  mutating func append(_ operation: AsyncOperation, _ priority: Operation.QueuePriority, number: Int? = nil) {
    insert(operation, Rank(priority: priority.rawValue, ticket: number ?? makeNumber()))
  }
}
