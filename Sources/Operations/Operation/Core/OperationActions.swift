extension OperationCore {
  /// What the caller of a start does after the lock.
  enum StartAction {
    case execute([OperationObserver], hasTimeout: Bool, [OperationFollower])
    case prepare
    /// The caller takes the keys, and then prepares the operation.
    case takeKeys(KeyRequest)
    case resume(OperationPause)
    case skip
    /// The operation has been started or ended before, and needs no slot for it.
    case ignore
    /// A programmer error: the operation has been started before.
    case refuse
    /// A programmer error: only the group may start its member.
    case isMember
    /// The operation has finished, and Foundation must make its transition.
    case leaveQueue
  }

  enum PlaceAction {
    case taken(MemberTraits)
    case refused(because: String)
    case repeated
  }
}

/// What a group must know of a member, such as whether it has unfinished dependencies or keys.
struct MemberTraits: OptionSet {
  let rawValue: UInt8

  static let waits = Self(rawValue: 1)
  static let needsKeys = Self(rawValue: 2)
  static let hasWeight = Self(rawValue: 4)
  static let isCancelled = Self(rawValue: 8)
  static let hasWaitLimit = Self(rawValue: 16)
  static let hasFlow = Self(rawValue: 32)

  var isReady: Bool { isDisjoint(with: [.waits, .needsKeys, .isCancelled]) }
}
