#if canImport(os)
import os

/// Intervals that Instruments shows among those of the system.
///
/// The interval is found again by its number, so that nothing has to be kept between its beginning and its end, which
/// may come on another thread: what `beginState(id:)` is there for.
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
/// Intervals for Instruments, which there is on Apple's platforms only.
enum Signposts {
  static func begin(_ index: Int, of owner: ObjectIdentifier, _ name: String) {}
  static func end(_ index: Int, of owner: ObjectIdentifier) {}
}
#endif
