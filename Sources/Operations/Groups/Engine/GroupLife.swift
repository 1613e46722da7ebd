import Foundation

extension GroupSchedule {
  enum Life {
    /// Whether the members arrive in their order when the group starts, because some have keys or a new priority.
    case gathering(membersArrive: Bool)
    /// No runner has taken a member yet, so the time of the group has not begun.
    case starting(GroupOperation, GroupQueue)
    case running(GroupOperation, GroupQueue)
    /// Open and without members. The group is not retained, so that it ends with its last owner.
    case idle(GroupQueue)
    /// The group timed out, and has finished before its members.
    case abandoned(GroupOperation, GroupQueue)
    /// The engine has released the abandoned group, because only executing members remain. These may never finish.
    case orphaned(GroupQueue)
    /// The group has finished, or has been released before its start or while it was idle.
    case ended

    /// The group, from its start until it is released. A running group stays alive.
    var group: GroupOperation? {
      switch self {
      case .starting(let group, _), .running(let group, _), .abandoned(let group, _): group
      case .gathering, .idle, .orphaned, .ended: nil
      }
    }

    var queue: GroupQueue? {
      switch self {
      case .starting(_, let queue), .running(_, let queue), .abandoned(_, let queue): queue
      case .idle(let queue), .orphaned(let queue): queue
      case .gathering, .ended: nil
      }
    }

    var isGathering: Bool { if case .gathering = self { true } else { false } }

    @inline(__always) var isRunning: Bool { queue != nil }

    /// Whether the group takes no more members. An orphaned group cannot finish a new member.
    var isOver: Bool {
      switch self {
      case .orphaned, .ended: true
      case .gathering, .starting, .running, .idle, .abandoned: false
      }
    }
  }

  /// How long the group stays unfinished without members.
  enum Openness {
    case none
    /// The group started suspended and without members. It finishes when it is resumed.
    case untilFirstMember
    case untilClosed
  }

  /// The strongest request to end the group. Each includes the ones before it.
  enum EndRequest: Comparable {
    case none
    case finish
    /// Members are only started to finish, so neither the limit nor a suspension applies.
    case drain
    /// As ``drain``, and the members that execute are cancelled.
    case cancel
  }

  enum Outcome {
    case none
    /// The caller must finish the group of this life.
    case end(Life)
    /// The caller must release the group. It is open and has no members, or it has finished before executing members.
    case release(GroupOperation)
  }

  struct HandOut {
    let member: AsyncOperation
    /// The rank of a ready member. The runner must put it back if it has a lower priority now.
    var rank: ReadyList.Rank?
    /// The keys that a member holds with its slot, until the runner has started it or given them back.
    var keys: KeyRequest?
    var runner = RunnerRequest.none

    /// False if the member was cancelled, and is started to finish.
    var hasSlot: Bool { rank != nil || keys != nil }
  }

  enum RunnerRequest {
    case none
    case addRunner
    /// A runner will take the members when `execute()` returns. The caller must check later whether it has.
    case watch
  }
}
