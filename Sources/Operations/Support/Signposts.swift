#if canImport(os)
import os

/// Signpost intervals for Instruments.
///
/// The number of an interval identifies it. The start and the end may be on different threads, and no state is kept
/// between them. `beginState(id:)` exists for this purpose.
enum Signposts {
  private static let signposter = OSSignposter(subsystem: "Operations", category: "Operations")

  private static func id(_ index: Int, of owner: ObjectIdentifier) -> OSSignpostID {
    OSSignpostID(UInt64(truncatingIfNeeded: Int(bitPattern: owner) &+ index &+ 1))
  }

  static func begin(_ index: Int, of owner: ObjectIdentifier, _ name: String) {
    guard signposter.isEnabled else { return }
    _ = signposter.beginInterval("operation", id: id(index, of: owner), "\(name, privacy: .public)")
  }

  static func end(_ index: Int, of owner: ObjectIdentifier) {
    guard signposter.isEnabled else { return }
    signposter.endInterval("operation", .beginState(id: id(index, of: owner)))
  }
}
#else
/// Signpost intervals exist only on Apple's platforms.
enum Signposts {
  static func begin(_ index: Int, of owner: ObjectIdentifier, _ name: String) {}
  static func end(_ index: Int, of owner: ObjectIdentifier) {}
}
#endif
