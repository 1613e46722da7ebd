/// Which ready members get the free slots.
extension GroupSchedule {
  private var freeSlots: Int { limit < 0 ? .max : max(limit - ready.slotsTaken, 0) }

  /// Whether a slot is left when all members that wait for no more than a slot have one.
  var hasRoomForMore: Bool { life.isRunning && !isSuspended && freeSlots > ready.count + called.count }

  var hasSlotForMore: Bool { maySlotsBeTaken && !isDraining && hasRoomForMore }

  // MARK: Members with keys

  /// A member needs a slot to take its keys.
  mutating func call(_ keys: KeyRequest, _ priority: Int) {
    if let number = keys.number {
      keys.place = called.add(keys, at: ReadyList.Rank(priority: priority, ticket: number))
    }
  }

  @discardableResult
  mutating func leaveCalled(_ keys: KeyRequest) -> Bool {
    guard let place = keys.place.take() else { return false }
    _ = called.remove(place)
    return true
  }

  @inline(__always) var mayTakeKeys: Bool { called.count > 0 && hasRoom && !isDraining }

  private var isCalledNext: Bool {
    called.earliest.map { first in ready.firstRank.map { first < $0 } ?? true } ?? false
  }

  /// Gives the free slots to the ready members that come before the first one that has been called.
  mutating func grantBeforeCalled() { while mayTakeKeys, !isCalledNext { grantFirst() } }

  /// Returns the first member that has been called, if it comes next and there is a slot for it.
  mutating func popCalled() -> KeyRequest? {
    guard mayTakeKeys, isCalledNext, let (_, keys) = called.popFirst() else { return nil }
    keys.place = nil
    return keys
  }

  private mutating func grantFirst() {
    guard let (member, rank) = ready.popFirst() else { return }
    ready.slotsTaken += 1
    granted.append(HandOut(member: member, rank: rank))
  }

  /// Gives a slot to a member that has taken its keys.
  mutating func grantSlot(to member: AsyncOperation, _ keys: KeyRequest) {
    ready.slotsTaken += 1
    let flow = keys.flow.map { ready.flows.index(of: $0) }
    ready.flows.begin(ObjectIdentifier(member), at: flow)
    granted.append(HandOut(member: member, keys: keys))
  }

  // MARK: Members without keys

  /// Gives the free slots to the first ready members. Returns whether a member that waits for no more than a slot has one,
  /// or will have one that is being returned.
  mutating func giveSlot(to member: AsyncOperation, _ keys: KeyRequest? = nil) -> Bool {
    let maySlotsBeGiven = life.isRunning && !isSuspended
    while maySlotsBeGiven, freeSlots > called.count, !ready.isEmpty { grantFirst() }
    guard keys.map({ $0.place != nil }) ?? ready.contains(member) else { return true }
    return maySlotsBeGiven && freeSlots >= ready.count + called.count - returningSlots
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

extension OperationCore.End {
  /// Whether the member uses a slot while what waits for its end is notified.
  var announcesSlot: Bool { ownsSlot && (!dependents.isEmpty || waiters.count > 0) }
}
