#if canImport(os)
import os
#endif

/// Signpost intervals for Instruments, on Apple's platforms only. An interval is identified by its index, because it
/// can start and end on different threads.
extension OperationTracer {
  func beginSignpost(_ index: Int, _ name: String) {
    #if canImport(os)
    guard Self.signposter.isEnabled else { return }
    _ = Self.signposter.beginInterval("operation", id: signpostID(index), "\(name, privacy: .public)")
    #endif
  }

  func endSignpost(_ index: Int) {
    #if canImport(os)
    guard Self.signposter.isEnabled else { return }
    Self.signposter.endInterval("operation", .beginState(id: signpostID(index)))
    #endif
  }

  #if canImport(os)
  private static let signposter = OSSignposter(subsystem: "Operations", category: "Operations")

  private func signpostID(_ index: Int) -> OSSignpostID {
    OSSignpostID(UInt64(truncatingIfNeeded: Int(bitPattern: ObjectIdentifier(self)) &+ index &+ 1))
  }
  #endif
}
