/// Which ready members get the free slots.
extension GroupSchedule {
  private func freeSlots(isOffered: Bool = false) -> Int {
    limit < 0 ? .max : max(limit - ready.slotsTaken + (isOffered ? 1 : 0), 0)
  }

  @inline(__always) var isCalledNext: Bool {
    called.firstRank.map { first in ready.firstRank.map { first < $0 } ?? true } ?? false
  }

  /// Whether a member could start if its keys were free: more slots are free than ready members come before it.
  func hasRoom(at rank: ReadyList.Rank, isOffered: Bool) -> Bool {
    let free = freeSlots(isOffered: isOffered)
    if !maySlotsBeTaken || free == 0 { return false }
    return free > ready.count || ready.count(before: rank, limit: free, isSlotOffered: isOffered) < free
  }

  /// Takes a slot for a member whose keys are free, unless ready members come first.
  mutating func takeSlot(at rank: ReadyList.Rank, isOffered: Bool) -> Bool {
    if !hasRoom(at: rank, isOffered: isOffered) { return false }
    if !isOffered { ready.slotsTaken += 1 }
    return true
  }

  /// Gives the free slots to the ready members, up to one that still has to take its keys, which is returned. The
  /// caller returns its slot if it does not take them.
  mutating func takeCalled() -> (operation: AsyncOperation, rank: ReadyList.Rank)? {
    while hasRoom, !isDraining, !called.isEmpty, let (member, rank, isCalled) = takeReady() {
      if isCalled { return (member, rank) }
      granted.append(HandOut(member: member, rank: rank))
    }
    return nil
  }

  /// Gives a slot to the first ready member, which may still have to take its keys.
  mutating func takeReady() -> (operation: AsyncOperation, rank: ReadyList.Rank, isCalled: Bool)? {
    let isCalled = isCalledNext
    guard let (member, rank) = isCalled ? called.popFirst() : ready.popFirst() else { return nil }
    ready.slotsTaken += 1
    return (member, rank, isCalled)
  }

  /// Gives the free slots to the first ready members. Returns whether a member that waits for no more than a slot has one,
  /// or will have one that is being returned.
  mutating func giveSlot(to member: AsyncOperation) -> Bool {
    let maySlotsBeGiven = life.isRunning && !isSuspended
    while maySlotsBeGiven, freeSlots() > (isCalledNext ? called.count : 0), let (next, rank) = ready.popFirst() {
      ready.slotsTaken += 1
      granted.append(HandOut(member: next, rank: rank))
    }
    guard ready.contains(member) || called.contains(member) else { return true }
    return maySlotsBeGiven && freeSlots() >= ready.count + called.count - returningSlots
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
  var announcesSlot: Bool { holdsSlot && (!dependents.isEmpty || waiters.count > 0) }
}
