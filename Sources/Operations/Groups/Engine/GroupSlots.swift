/// Which ready members get the free slots.
extension GroupSchedule {
  private var givesSlots: Bool { life.isUnderway && !isSuspended }

  @inline(__always) var freeSlots: Int { !givesSlots ? 0 : limit < 0 ? .max : max(limit - ready.slotsInUse, 0) }

  /// The slots that are left when all members that wait for no more than a slot have one. Negative if there are too few.
  var spareSlots: Int { freeSlots - ready.count - called.count }

  // MARK: Members with keys

  /// Whether a member may be given a free slot before a runner takes it. It needs none while the group drains.
  var mayGiveSlots: Bool { startObstacles == 0 && !isDraining }

  @inline(__always) var hasSlotForCalled: Bool { !called.isEmpty && mayGiveSlots && freeSlots > 0 }

  /// Whether a member that has been called comes before all ready ones, and there is a slot for it.
  var isCalledNext: Bool {
    guard hasSlotForCalled, let first = called.firstRank else { return false }
    return ready.firstRank.map { first < $0 } ?? true
  }

  /// Returns the first member that has been called, if there is a slot for it when those before it have theirs.
  mutating func popCalled() -> KeyRequest? {
    while hasSlotForCalled, !isCalledNext { grantFirst() }
    return hasSlotForCalled ? called.popFirst()?.element : nil
  }

  /// Gives the free slots to the first ready members, but for those that members with keys wait for.
  mutating func grantReady() { while mayGiveSlots, freeSlots > called.count, !ready.isEmpty { grantFirst() } }

  private mutating func grantFirst() {
    guard let (member, rank) = ready.popFirst() else { return }
    ready.slotsInUse += 1
    granted.append(HandOut(member: member, rank: rank))
  }

  /// Gives a slot to a member that has taken its keys.
  mutating func grantSlot(to member: AsyncOperation, _ keys: KeyRequest) {
    ready.slotsInUse += 1
    let index = takeKeyedFlow(of: member).map { ready.flows.index(of: $0) }
    ready.flows.start(ObjectIdentifier(member), at: index)
    granted.append(HandOut(member: member, keys: keys))
  }

  @discardableResult
  mutating func takeKeyedFlow(of member: AsyncOperation) -> ExclusivityKey? {
    keyedFlows.isEmpty ? nil : keyedFlows.removeValue(forKey: ObjectIdentifier(member))
  }

  // MARK: Members without keys

  /// Gives a spare slot to a new member. Returns whether there is one.
  mutating func takeSpareSlot() -> Bool {
    guard spareSlots > 0, mayGiveSlots else { return false }
    beginAddition(of: 1)
    endAddition()
    ready.slotsInUse += 1
    ready.flows.startWithoutFlow()
    return true
  }

  /// Returns whether a member that waits only for a slot has one, is given one, or will have one that is returned.
  mutating func giveSlot(to member: AsyncOperation, _ keys: KeyRequest? = nil, returning: Int = 0) -> Bool {
    grantReady()
    guard keys.map({ called.contains($0) }) ?? ready.contains(member) else { return true }
    return givesSlots && spareSlots >= -returning
  }

  /// Takes back the slots that are not taken with keys, and that no runner has taken yet.
  mutating func takeBackSlots() {
    for case let handOut? in exchange(&granted, with: ArrayDeque()).all {
      if let rank = handOut.rank { ready.putBack(handOut.member, rank) } else { granted.append(handOut) }
    }
  }

  mutating func putBack(_ member: AsyncOperation, _ rank: ReadyList.Rank) {
    if !hasEnded { ready.putBack(member, rank) }
  }
}
