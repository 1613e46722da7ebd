import Foundation

/// A slot that the body of ``OperationContainer/withSlot(_:holding:in:waitLimit:flow:function:line:isolation:_:)`` got without
/// waiting. It gets an operation, which is a member of the group in its place, when the members are read.
final class GroupSlot: Work, @unchecked Sendable {
  fileprivate let make: () -> AsyncOperation
  fileprivate let began = CoarseTime.now
  // Guarded by the lock of the group's engine.
  fileprivate var number = 0
  fileprivate var memberIndex = 0
  fileprivate var operation: AsyncOperation?

  fileprivate init(_ make: @escaping @Sendable () -> AsyncOperation) { self.make = make }
}

extension GroupEngine {
  /// Takes a slot, if one is free, unless a subclass or an observer needs its operation.
  func takeSlot(of group: GroupOperation, _ make: @escaping @Sendable () -> AsyncOperation) -> GroupSlot? {
    if collectsAll || !group.trace.isEmpty { return nil }
    let taken = state.withLock { state -> (GroupSlot, Action, GroupOperation?)? in
      state.schedule.wake(group)
      guard state.memberObservers.isEmpty, state.memberReaders == 0, state.schedule.takeSpareSlot() else { return nil }
      let slot = GroupSlot(make)
      slot.memberIndex = state.members.skip()
      slot.number = state.slots.append(slot)
      state.progress.add(1)
      let group = state.schedule.beginRunning()
      var action = state.decideAction()
      action.updatesProgress = state.progress.isFollowed
      return (slot, action, group)
    }
    guard let (slot, action, timed) = taken else { return nil }
    timed?.startDeadline()
    slot.setOuter(group)
    let (trace, isCancelled) = group.core.withLock { ($0.trace, $0.lifecycle.isCancelled) }
    if !trace.isEmpty, !isCancelled {
      let members = readMembers()
      for follower in trace { follower.noteMembers(members) }
    }
    carryOut(action)
    if !isCancelled { return slot }
    // The members of the group may have been cancelled before.
    end(slot)
    return nil
  }

  func end(_ slot: GroupSlot) {
    let (operation, action) = state.withLock { state -> (AsyncOperation?, Action) in
      // Work that outlasts the body keeps the slot, but not the operation.
      if let operation = slot.operation.take() { return (operation, Action()) }
      let action = state.removeMember(runnerTakesNext: false) { state in
        state.schedule.ready.returnSlot()
        _ = state.slots.remove(slot.number)
        state.progress.complete(ObjectIdentifier(slot))
      }
      return (nil, action)
    }
    if let operation { return operation.finish() }
    slot.end()
    carryOut(action)
  }

  /// Returns the members, after a change in the same step. The slots that have no operations get them before.
  func readMembers(_ change: (inout State) -> Void = { _ in }) -> [AsyncOperation] {
    var isFirst = true
    while true {
      let (members, slots, queue) = state.withLock { state -> ([AsyncOperation], [GroupSlot], GroupQueue?) in
        if state.slots.count > 0 {
          if isFirst { state.memberReaders += 1 }
          return ([], state.slots.elements, state.schedule.life.queue)
        }
        if !isFirst { state.memberReaders -= 1 }
        change(&state)
        return (state.members.elements, [], nil)
      }
      if slots.isEmpty { return members }
      isFirst = false
      let runner = queue.map { GroupRunner(for: self, in: $0, clock: owner?.assignedClock) }
      for slot in slots { makeMember(of: slot, runner) }
    }
  }

  private func makeMember(of slot: GroupSlot, _ runner: GroupRunner?) {
    let operation = slot.make()
    operation.core.withLock { core in
      core.work = slot
      _ = core.takePlace(in: self, index: slot.memberIndex)
      _ = core.start(by: runner, number: 0, hasSlot: true)
      core.since = slot.began
    }
    let isCancelled = state.withLock { state in
      guard slot.operation == nil, state.slots.remove(slot.number) != nil else { return false }
      slot.operation = operation
      state.members.insert(operation, at: slot.memberIndex)
      return state.schedule.endRequest == .cancel
    }
    if isCancelled { operation.cancel() }
  }
}
