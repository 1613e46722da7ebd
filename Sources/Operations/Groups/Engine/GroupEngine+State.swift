import Foundation

/// The state that the engine keeps under its lock.
extension GroupEngine {
  struct State {
    var schedule = GroupSchedule()
    var members = MemberList()
    var progress = GroupProgress()
    var roomWaiters = RoomWaiters()
    var errorPolicy = GroupOperation.ErrorPolicy.collect
    /// Plain Foundation members, which cannot store their index themselves.
    var plainMembers: [ObjectIdentifier: PlainMember] = [:]
    /// Why plain members were cancelled.
    var plainErrors: [ObjectIdentifier: any Error] = [:]
    /// Whether a group has been a member, so that this group may enclose others.
    var hasHadGroups = false
    /// Whether the members have been cancelled, or are being cancelled.
    var hasCancelledMembers = false
    /// Whether a delayed search for cycles is pending.
    var isSearchDue = false
    /// The group, from its start to its end, because a running group stays alive.
    var group: GroupOperation?
    var queue: OperationQueue?
    /// The group's clock at its start. Nil for the system's clock.
    var clock: (any Clock<Duration>)?
    /// Whether no member has been started yet, so that the time of the group has not begun.
    var isDeadlineDue = false
    /// Whether the group timed out and finished before its members.
    var isAbandoned = false
    /// Whether the group has been deallocated.
    var isDisbanded = false

    /// Removes a member for which nothing is left to do.
    mutating func settle(_ member: FinishedMember) -> Step {
      // This is not the last reference: the caller has one, so nothing is released under the lock.
      _ = members.remove(at: member.index)
      schedule.accounted()
      var step = nextStep()
      step.roomWaiters = roomWaiters.take(downTo: members.count)
      progress.complete(member.operation)
      step.updatesProgress = progress.isFollowed
      return step
    }

    func hasRoom(below count: Int) -> Bool { members.count < count || roomWaiters.isOver }

    /// Returns the group if its time begins now, the first time.
    mutating func takeDueDeadline() -> GroupOperation? {
      defer { isDeadlineDue = false }
      return isDeadlineDue ? group : nil
    }

    mutating func weigh(_ part: MemberPart) {
      if members.contains(part.index) { progress.weigh(part) }
    }

    mutating func nextStep() -> Step {
      let isDone = schedule.endIfDone()
      return Step(
        isDone: isDone,
        isStuck: schedule.isCycleSuspected && schedule.isStuck,
        released: isDone ? nil : releaseIfAbandoned()
      )
    }

    /// Returns the group, to be released, if it has finished and only executing members remain, because these may
    /// never finish.
    mutating func releaseIfAbandoned() -> GroupOperation? {
      guard isAbandoned, schedule.hasOnlyExecutingMembers else { return nil }
      defer { group = nil }
      return group
    }
  }

  /// The actions that follow the end of a member.
  struct Step {
    var updatesProgress = false
    var isDone = false
    var isStuck = false
    /// The tasks that waited for this room.
    var roomWaiters = RoomWaiters.Batch()
    /// The group, if the caller must release it.
    var released: GroupOperation?
  }
}
