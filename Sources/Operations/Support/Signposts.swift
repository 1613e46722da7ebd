#if canImport(os)
import os
#endif

/// Signpost intervals for Instruments, on Apple's platforms only, by index, because they can end on another thread.
enum Signposts {
  static func begin(_ index: Int, of owner: ObjectIdentifier, _ name: String) {
    #if canImport(os)
    guard signposter.isEnabled else { return }
    _ = signposter.beginInterval("operation", id: id(index, of: owner), "\(name, privacy: .public)")
    #endif
  }

  static func end(_ index: Int, of owner: ObjectIdentifier) {
    #if canImport(os)
    guard signposter.isEnabled else { return }
    signposter.endInterval("operation", .beginState(id: id(index, of: owner)))
    #endif
  }

  #if canImport(os)
  private static let signposter = OSSignposter(subsystem: "Operations", category: "Operations")

  private static func id(_ index: Int, of owner: ObjectIdentifier) -> OSSignpostID {
    OSSignpostID(UInt64(truncatingIfNeeded: Int(bitPattern: owner) &+ index &+ 1))
  }
  #endif
}
