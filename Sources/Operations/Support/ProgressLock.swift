import Foundation

/// The one lock for all changes that the package makes to Foundation's Progress.
///
/// Foundation's `Progress` has no lock on Linux, and a child changes its parent. The lock is recursive, because on
/// Apple's platforms observers are called while it is held.
enum ProgressLock {
  private static let lock = NSRecursiveLock()

  static func exclusively<Result>(_ body: () -> Result) -> Result { lock.withLock(body) }
}
