extension OperationCore {
  /// What the caller of a start does after the lock.
  enum StartAction {
    case execute([OperationObserver], hasTimeout: Bool, [OperationFollower])
    case prepare
    /// The caller takes the keys, and then prepares the operation.
    case takeTurn(KeyRequest)
    case resume(OperationPause)
    case skip
    /// The operation has been started or ended before, and needs no slot for it.
    case ignore
    /// A programmer error: the operation has been started before.
    case refuse
    /// A programmer error: only the group may start its member.
    case isMember
    case notReady
    /// All dependencies have finished, but another thread may be about to notify Foundation.
    case awaitGate
    /// The operation has finished, and Foundation must make its transition.
    case leaveQueue
  }

  enum ClaimAction {
    case claimed(Claim)
    case refused(because: String)
    case repeated
  }

  /// What a group must know of a member, such as whether it has unfinished dependencies or keys.
  struct Claim: OptionSet {
    let rawValue: UInt8

    static let waits = Self(rawValue: 1)
    static let needsTurn = Self(rawValue: 2)
    static let hasWeight = Self(rawValue: 8)
    static let isCancelled = Self(rawValue: 16)
    static let hasWaitLimit = Self(rawValue: 32)
    static let hasFlow = Self(rawValue: 64)

    var isReady: Bool { isDisjoint(with: [.waits, .needsTurn, .isCancelled]) }
  }
}
