import Foundation

/// A moment in time with a resolution of a few milliseconds. Every operation records its start for stall reports, and
/// reading the coarse clock takes 4 ns instead of 23 ns. It stands still while the machine sleeps.
struct CoarseTime: Sendable {
  private let nanoseconds: UInt64

  #if canImport(Darwin)
  static var now: Self { Self(nanoseconds: clock_gettime_nsec_np(CLOCK_UPTIME_RAW_APPROX)) }
  #else
  static var now: Self {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    return Self(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
  }
  #endif

  var milliseconds: Int { Int(nanoseconds / 1_000_000) }

  var elapsed: Duration {
    let now = Self.now.nanoseconds
    return .nanoseconds(now > nanoseconds ? now - nanoseconds : 0)
  }
}
