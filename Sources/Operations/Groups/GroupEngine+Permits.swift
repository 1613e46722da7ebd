import Foundation

/// Members that need a permit before they are started: keys, that is.
extension GroupEngine {
  /// Starts a member of a group in which some need permits. They are requested one after the other, in the order in
  /// which the members are handed out, although several runners may be at it.
  func startInOrder(_ member: Operation, by runner: GroupRunner) {
    guard let own = member as? AsyncOperation, own.core.withLock({ $0.extras?.permit != nil }) else {
      handedOut()
      return start(member, by: runner)
    }
    let beginning = own.startAsMember(by: runner)
    guard case .needsPermit(let permit) = beginning else {
      handedOut()
      return carryOut(beginning, own, by: runner)
    }
    let isGranted = permit.acquire(isInHand: false)
    handedOut()
    start(own, ifGranted: isGranted, by: runner)
  }

  func handedOut() {
    if state.withLock({ $0.schedule.handedOut() }) { addRunner() }
  }

  /// Starts the member if its permit has been granted. Otherwise gives its slot back, and passes it over: it is ready
  /// again when its turn comes.
  func start(_ member: AsyncOperation, ifGranted isGranted: Bool, by runner: GroupRunner) {
    // One that has been called ready meanwhile, because it was cancelled, is started by another runner.
    guard isGranted, member.core.withLock({ $0.takeReadiness() != nil }) else { return slotIsFree() }
    carryOut(member.startAsMember(by: runner, hasPermit: true), member, by: runner)
  }
}
