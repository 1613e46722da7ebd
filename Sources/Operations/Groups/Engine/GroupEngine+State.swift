import Foundation

/// What the engine keeps under its lock.
extension GroupEngine {
  struct State {
    var schedule = GroupSchedule()
    var members = MemberList()
    var progress = GroupProgress()
    var roomWaiters = RoomWaiters()
    var errorPolicy = GroupOperation.ErrorPolicy.collect
    /// Plain Foundation members, which cannot note their index themselves.
    var plainMembers: [ObjectIdentifier: PlainMember] = [:]
    /// A group has been a member, so that this one may be around others.
    var hasHadGroups = false
    /// The members have been cancelled, or are just being.
    var hasCancelledMembers = false
    /// A search for cycles will begin in a moment.
    var isSearchDue = false
    /// From the beginning to the end: a running group stays alive.
    var group: GroupOperation?
    var queue: OperationQueue?
    /// The group's when it began. Nil if that is the system's.
    var clock: (any Clock<Duration>)?
    /// No member has been started yet, and the time of the group has not begun.
    var isDeadlineDue = false
    /// The group has finished before its members have: it timed out.
    var isAbandoned = false
    /// The group has been released.
    var isDisbanded = false

    /// Nothing is left to do for a member.
    mutating func settle(_ member: FinishedMember) -> Step {
      // Not its last reference: the caller has one, and nothing is released under the lock.
      _ = members.remove(at: member.index)
      schedule.accounted()
      var step = nextStep()
      step.roomWaiters = roomWaiters.take(downTo: members.count)
      progress.complete(member.operation)
      step.updatesProgress = progress.isFollowed
      return step
    }

    func hasRoom(below count: Int) -> Bool { members.count < count || roomWaiters.isOver }

    /// The group whose time is to begin now, if it has not yet.
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

    /// Once all that is left is members that execute, perhaps for ever, a group that has finished without them need not
    /// stay for them.
    mutating func releaseIfAbandoned() -> GroupOperation? {
      guard isAbandoned, schedule.hasOnlyExecutingMembers else { return nil }
      defer { group = nil }
      return group
    }
  }

  /// What is to be done about a member having ended.
  struct Step {
    var updatesProgress = false
    var isDone = false
    var isStuck = false
    /// The tasks that have waited for this room.
    var roomWaiters = RoomWaiters.Batch()
    /// To be let go of.
    var released: GroupOperation?
  }
}
