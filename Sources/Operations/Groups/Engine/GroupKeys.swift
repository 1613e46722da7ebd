import Foundation
import Synchronization

/// The spare slots of a group, for members that wait for their keys. The table of keys reads them without the group's lock.
final class GroupRoom: Sendable {
  /// The number, times two. The lowest bit is set while others wait behind a member until there is none.
  private let state = Atomic(0)

  var place: KeyPlace { .group(ObjectIdentifier(self)) }

  /// Returns whether there is a slot. If so, records that others wait behind the member until there is none.
  func blocksOthers() -> Bool { state.bitwiseOr(1, ordering: .relaxed).oldValue > 1 }

  /// Returns how many slots are left beside that of a member. Negative if there is none for it.
  func reserveSlot() -> Int { state.wrappingSubtract(2, ordering: .relaxed).newValue >> 1 }

  /// Called under the lock of the group. Returns whether others that wait may pass from now on.
  func change(to spareSlots: Int) -> Bool {
    let slots = min(max(spareSlots, 0), .max >> 1)
    if state.load(ordering: .relaxed) >> 1 == slots { return false }
    let isAwaited = state.exchange(slots << 1, ordering: .relaxed) & 1 == 1
    // While slots are left, the others still wait, which is recorded again.
    return isAwaited && !blocksOthers()
  }
}

/// How members take and leave their keys: the engine changes the table of keys under its own lock.
extension GroupEngine.State {
  /// Continues after a change of the schedule: called members take keys, a runner is requested, or the group ends.
  mutating func decideAction(runnerTakesNext: Bool = false) -> GroupEngine.Action {
    if let room, room.change(to: schedule.spareSlots) {
      return changeKeys(runnerTakesNext: runnerTakesNext) { state, table, effects in
        // A member that passes those of this group may let an earlier one have its turn, which would take the slot.
        state.schedule.grantReady()
        table.close(room.place)
        table.serve(&effects)
      }
    }
    if schedule.hasSlotForCalled { return changeKeys(runnerTakesNext: runnerTakesNext) { _, _, _ in } }
    var action = GroupEngine.Action()
    action.runner = schedule.requestRunner(runnerTakesNext: runnerTakesNext)
    action.outcome = schedule.endIfDone()
    return action
  }

  mutating func changeKeys(
    runnerTakesNext: Bool,
    _ body: (inout Self, inout KeyTable, inout [KeyTable.Effect]) -> Void
  ) -> GroupEngine.Action {
    var effects: [KeyTable.Effect] = []
    KeyRegistry.change(&effects) { table, effects in
      body(&self, &table, &effects)
      answerCalls(&table, &effects)
    }
    var action = decideAction(runnerTakesNext: runnerTakesNext)
    action.keyEffects = action.keyEffects.isEmpty ? effects : effects + action.keyEffects
    return action
  }

  /// Makes a change, in which members whose turn comes take their keys with the spare slots.
  mutating func givingSlots(_ table: inout KeyTable, _ effects: inout [KeyTable.Effect], _ change: KeyTable.Change) {
    guard let room else { return change(&table, &effects) }
    if room.change(to: schedule.spareSlots) { table.close(room.place) }
    table.slots = (schedule.mayGiveSlots ? room.place : .started, schedule.freeSlots, [])
    change(&table, &effects)
    table.serve(&effects)
    let takers = exchange(&table.slots, with: (.started, 0, [])).takers
    for case let keys as KeyRequest in takers {
      if let member = keys.operation { schedule.grantSlot(to: member, keys) }
    }
  }

  /// Answers the calls of members of this group, and those that they cause.
  private mutating func answerCalls(_ table: inout KeyTable, _ effects: inout [KeyTable.Effect]) {
    guard let room else { return }
    var (done, called) = (0, [KeyRequest]())
    while true {
      while done < effects.count {
        defer { done += 1 }
        guard case .call(let keys as KeyRequest, isAnswered: false) = effects[done], keys.room === room else {
          continue
        }
        effects[done] = .call(keys, isAnswered: true)
        guard let entry = keys.ticket.flatMap({ table[$0] }), entry.state.isCalled else { continue }
        schedule.called.insert(keys, ReadyList.Rank(priority: entry.rank.priority, ticket: entry.number))
        called.append(keys)
      }
      if let keys = schedule.popCalled() {
        givingSlots(&table, &effects) { $0.answer(keys, hasSlot: true, &$1) }
      } else if let keys = called.popLast() {
        givingSlots(&table, &effects) { $0.answer(keys, hasSlot: false, &$1) }
      } else {
        return
      }
    }
  }
}

extension GroupEngine {
  private func changeKeys(_ body: (inout State, inout KeyTable, inout [KeyTable.Effect]) -> Void) {
    let runnerTakesNext = GroupRunner.isAboutToTake(from: self)
    carryOut(state.withLock { $0.changeKeys(runnerTakesNext: runnerTakesNext, body) })
  }

  /// A member needs its keys and a slot, unless it waits for them or has them.
  func enterWaitQueues(_ member: AsyncOperation, of keys: KeyRequest) {
    let flow = member.flow
    let isMoved = keys.arrive(member) { priority in
      changeKeys { state, table, effects in
        // A member with a ticket and without a state has left its keys for good meanwhile.
        let isOver = table.state(of: keys)?.isHolding ?? (keys.ticket != nil)
        if state.schedule.hasEnded || isOver { return }
        let room = state.room ?? GroupRoom()
        state.room = room
        keys.room = room
        if let flow { state.schedule.keyedFlows[ObjectIdentifier(member)] = flow }
        let number = state.schedule.ready.makeNumber()
        state.givingSlots(&table, &effects) { keys.enter(&$0, at: room.place, priority, number: number, &$1) }
        if table.state(of: keys)?.isCalled == true { effects.append(.call(keys, isAnswered: false)) }
      }
    }
    if isMoved { moveMember(member, keys) }
    member.noteKeyWait()
  }

  /// The turn of a member has come, and it needs a slot to take its keys.
  func wasCalled(_ member: AsyncOperation, _ keys: KeyRequest) {
    let priority = member.queuePriority
    changeKeys { _, table, effects in
      guard let ticket = keys.ticket, table.state(of: ticket)?.isCalled == true else { return }
      table.setPriority(priority.rawValue, lent: 0, of: ticket, &effects)
      effects.append(.call(keys, isAnswered: false))
    }
  }

  /// A member leaves the wait queues, or its keys and the slot that it has with them.
  func leave(_ keys: KeyRequest, of member: AsyncOperation, forGood: Bool, unlessHeld: Bool) {
    changeKeys { state, table, effects in
      _ = state.schedule.called.remove(ObjectIdentifier(keys))
      let keyState = table.state(of: keys)
      if state.room != nil, !unlessHeld, keyState == .holding || keyState == .replaced {
        state.schedule.ready.returnSlot(of: ObjectIdentifier(member))
        // A member that waits for the keys may come before the ready ones.
        while state.schedule.isCalledNext, let next = state.schedule.popCalled(), !table.recall(next) {}
      }
      if forGood { state.schedule.takeKeyedFlow(of: member) }
      state.givingSlots(&table, &effects) { keys.leave(&$0, forGood: forGood, unlessHeld: unlessHeld, &$1) }
    }
  }

  /// Whether a member that waits for no more than its keys and a slot has them, or will have a slot that is being returned.
  /// It is given a slot if there is one.
  func isAboutToStart(_ member: AsyncOperation, _ keys: KeyRequest?) -> Bool {
    // Another thread may be about to report its turn.
    if let keys { wasCalled(member, keys) }
    return state.withLock { state in
      if keys?.waitsForKeys == true { return false }
      return state.schedule.giveSlot(to: member, keys, returning: returningSlots.load(ordering: .relaxed))
    }
  }
}
