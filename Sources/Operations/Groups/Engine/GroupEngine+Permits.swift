import Foundation

/// Starting members that need a permit, such as keys.
extension GroupEngine {
  /// Starts a member of a group in which some members need permits.
  ///
  /// Permits are requested one at a time, in the order in which members are handed out, even if several runners are
  /// active.
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
    let isGranted = permit.acquire(isStarted: false)
    handedOut()
    start(own, ifGranted: isGranted, by: runner)
  }

  func handedOut() {
    if state.withLock({ $0.schedule.handedOut() }) { addRunner() }
  }

  /// Starts the member if its permit was granted.
  ///
  /// Otherwise releases its slot, and the member becomes ready again with the permit.
  func start(_ member: AsyncOperation, ifGranted isGranted: Bool, by runner: GroupRunner) {
    if !isGranted { member.noteWaitForPermit() }
    // A member that was cancelled meanwhile has become ready, and another runner starts it.
    guard isGranted, member.core.withLock({ $0.takeReadiness() != nil }) else { return slotIsFree() }
    carryOut(member.startAsMember(by: runner, hasPermit: true), member, by: runner)
  }
}
