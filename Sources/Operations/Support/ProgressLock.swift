import Foundation

/// The one lock for all changes that the package makes to Foundation's Progress.
///
/// That has none on Linux, and a child changes its parent. It is recursive, because on Apple's platforms observers are
/// called inside.
enum ProgressLock {
  private static let lock = NSRecursiveLock()

  static func exclusively<Result>(_ body: () -> Result) -> Result { lock.withLock(body) }
}
