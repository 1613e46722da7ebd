import Foundation

/// Finishing members and the group.
extension GroupEngine {
  func finished(_ member: FinishedMember, failed: Bool, takenNext: Bool) {
    var member = member
    let (help, group, step) = state.withLock { state -> (GroupSchedule.Help, GroupOperation?, Step) in
      if state.isDisbanded { return (.none, nil, Step()) }
      let accounts = (accountsForAll || failed) && state.group != nil
      member.postponesStarts = failed && accounts && state.errorPolicy != .collect
      if member.postponesStarts { state.schedule.postponeStarts() }
      let help = member.holdsSlot ? state.schedule.freeSlot(takenNext: takenNext) : .none
      if accounts { return (help, state.schedule.beginAccounting(for: member) ? state.group : nil, Step()) }
      return (help, nil, state.settle(member))
    }
    carryOut(help)
    if let group { account(for: member, in: group) } else { carryOut(step) }
  }

  /// Passes results to the group, one at a time, until there are none left.
  private func account(for first: FinishedMember, in group: GroupOperation) {
    var batch = [first]
    while !batch.isEmpty {
      for member in batch {
        group.account(for: member)
        let (addsRunner, step) = state.withLock { state in
          (member.postponesStarts && state.schedule.resumeStarts(), state.settle(member))
        }
        if addsRunner { addRunner() }
        carryOut(step)
      }
      batch = state.withLock { $0.schedule.nextToAccount() }
    }
    carryOut(state.withLock { $0.nextStep() })
  }

  func carryOut(_ step: Step) {
    step.roomWaiters.resume()
    if step.updatesProgress { updateProgress() }
    if step.isDone { end() } else if step.isStuck { searchForSuspectedCycle() }
  }

  func end() {
    let group = state.withLock { state in
      defer { (state.group, state.queue) = (nil, nil) }
      return state.group
    }
    endProgress()
    Trampoline.run { group?.finishNow() }
  }
}

/// A member that has finished, with its index in the member list.
struct FinishedMember {
  let operation: Operation
  let index: Int
  /// Whether the member has a slot to release.
  var holdsSlot = true
  /// The error of a plain Foundation operation, which cannot store it itself.
  var error: (any Error)?
  /// Whether no member starts until the group has processed the failure of this one.
  var postponesStarts = false
}
