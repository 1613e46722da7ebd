import Foundation

/// What a plain Foundation operation waits for until it has its keys, and has been put where it is to run.
///
/// An operation itself that no queue has, and the only one here that shows in somebody's `dependencies`. Opening it
/// before the other is in its queue would be one of the wake-ups that Foundation on Linux may lose.
final class ExclusivityGate: Operation, @unchecked Sendable {
  private let locks = Locked(2)
  /// Who opens it. Set once, before anybody else knows the gate.
  weak var request: ExclusivityRequest?

  init(for keys: [ExclusivityKey]) {
    super.init()
    name = "exclusive " + keys.quoted
  }

  /// Called once for each of the two.
  func unlock() {
    let isOpen = locks.withLock { locks in
      locks -= 1
      return locks == 0
    }
    if isOpen { start() }
  }
}
