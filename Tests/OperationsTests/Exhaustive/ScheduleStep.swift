import Foundation

@testable import Operations

/// What the engine of a group does: each step is one critical section.
enum ScheduleStep: InterleavedStep {
  case beginAdding([Int])
  case append([Int])
  case becomeReady(Int, takenNext: Bool)
  case membersWereAdded
  case begin, suspend, resume, windDown
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

  func perform(in world: inout ScheduleWorld, by actor: inout InterleavedActor<Self>) {
    switch self {
    case .beginAdding(let members):
      world.schedule.beginAdding(members.count)
      world.deeds.coming += 1
    case .append(let members):
      world.schedule.append(members.map { ReadyMember(ScheduleWorld.operations[$0]) })
      world.deeds.ready += members
    case .becomeReady(let member, let takenNext):
      world.deeds.ready.append(member)
      help(
        world.schedule.becameReady(ReadyMember(ScheduleWorld.operations[member]), takenNext: takenNext),
        &world,
        &actor
      )
    case .membersWereAdded:
      world.deeds.coming = max(0, world.deeds.coming - 1)
      let (addsRunner, isDone) = world.schedule.membersWereAdded()
      carryOut(addsRunner, isDone, &world, &actor)
    case .split(let steps): actor.spawn(steps)
    case .begin:
      world.schedule.begin()
      actor.go(on: .membersWereAdded)
      world.deeds.coming += 1
    case .suspend: change(&world, &actor) { $0.isSuspended = true }
    case .resume: change(&world, &actor) { $0.isSuspended = false }
    case .windDown:
      world.deeds.isOpen = false
      change(&world, &actor) { $0.isDraining = true }
    case .stopStayingOpen:
      world.deeds.isOpen = false
      change(&world, &actor) { $0.staysOpen = false }
    case .finishGroup:
      world.deeds.isOpen = false
      change(&world, &actor) { $0.isFinishing = true }
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
      if let dependent = world.members[member].dependent {
        actor.go(on: .becomeReady(dependent, takenNext: here))
      }
    case .finish(let member, let here): finish(member, here, &world, &actor)
    case .settle: settle(&world)
    case .accountForMore:
      let batch = world.schedule.nextToAccount()
      world.promise(batch.map(\.index) == world.deeds.unaccounted, "a result was lost")
      world.deeds.unaccounted = []
      world.deeds.isAccounting = !batch.isEmpty
      if batch.isEmpty, world.schedule.endIfDone() { end(&world) }
      if !batch.isEmpty { actor.go(on: batch.map { _ in .settle } + [.accountForMore]) }
    }
    world.check()
  }

  // MARK: Members run

  private func take(_ world: inout ScheduleWorld, _ actor: inout InterleavedActor<Self>) {
    let hasSlot = world.schedule.limit < 0 || world.schedule.slotsTaken < world.schedule.limit
    guard case .run(let operation, let addsRunner, let isCancelled) = world.schedule.take() else { return }
    world.promise((hasSlot && !world.schedule.isSuspended) || isCancelled, "a member was handed out that was to wait")
    let member = ScheduleWorld.operations.firstIndex { $0 === operation } ?? 0
    world.promise(world.deeds.ready.first == member, "a member was handed out before its turn")
    world.promise(world.deeds.started.insert(member).inserted, "a member was handed out twice")
    world.deeds.ready.removeFirst()
    let isAsynchronous = world.members[member].isAsynchronous
    let steps: [Self] = [
      .tellDependent(member, here: !isAsynchronous), .finish(member, here: !isAsynchronous),
    ]
    if isAsynchronous { actor.spawn(steps) }
    if addsRunner { addRunner(&world, &actor) }
    actor.go(on: .take)
    if !isAsynchronous { actor.go(on: steps) }
  }

  private func addRunner(_ world: inout ScheduleWorld, _ actor: inout InterleavedActor<Self>) {
    world.deeds.runners += 1
    actor.spawn([.runnerBegins, .take])
  }

  private func help(
    _ help: GroupSchedule.Help,
    _ world: inout ScheduleWorld,
    _ actor: inout InterleavedActor<Self>
  ) {
    switch help {
    case .none: return
    case .addRunner: addRunner(&world, &actor)
    case .watch: actor.spawn([.endWatch])
    }
  }

  private func change(
    _ world: inout ScheduleWorld,
    _ actor: inout InterleavedActor<Self>,
    _ change: (inout GroupSchedule) -> Void
  ) {
    change(&world.schedule)
    let addsRunner = world.schedule.addRunnerIfUseful()
    carryOut(addsRunner, world.schedule.endIfDone(), &world, &actor)
  }

  private func carryOut(
    _ addsRunner: Bool,
    _ isDone: Bool,
    _ world: inout ScheduleWorld,
    _ actor: inout InterleavedActor<Self>
  ) {
    if addsRunner { addRunner(&world, &actor) }
    if isDone { end(&world) }
  }

  // MARK: Members end

  private func finish(
    _ member: Int,
    _ here: Bool,
    _ world: inout ScheduleWorld,
    _ actor: inout InterleavedActor<Self>
  ) {
    world.deeds.finished.insert(member)
    help(world.schedule.freeSlot(takenNext: here), &world, &actor)
    guard world.members[member].isFailing else { return settle(&world) }
    let finished = FinishedMember(operation: ScheduleWorld.operations[member], index: member)
    if world.schedule.beginAccounting(for: finished) {
      world.promise(!world.deeds.isAccounting, "two look at results")
      world.deeds.isAccounting = true
      actor.go(on: .settle, .accountForMore)
    } else {
      world.deeds.unaccounted.append(member)
    }
  }

  private func settle(_ world: inout ScheduleWorld) {
    world.deeds.settled += 1
    world.schedule.accounted()
    if world.schedule.endIfDone() { end(&world) }
  }

  private func end(_ world: inout ScheduleWorld) {
    world.deeds.ends += 1
    world.promise(!world.deeds.isOpen, "the group ends while it is open")
    world.promise(world.deeds.coming == 0, "the group ends while members come")
    world.promise(!world.deeds.isAccounting, "the group ends before it has seen the results")
    world.promise(world.deeds.settled == world.deeds.started.count, "the group ends before its members")
  }
}
