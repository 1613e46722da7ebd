import Foundation

/// Something to be timed: `run` does the work of `units` operations, and returns when all of it has been torn down.
struct Workload: Sendable {
  let name: String
  let units: Int
  let run: @Sendable () -> Void

  /// The time a unit takes, in nanoseconds.
  func measure() -> Double {
    let start = ContinuousClock.now
    run()
    let elapsed = (ContinuousClock.now - start).components
    return (Double(elapsed.seconds) * 1e9 + Double(elapsed.attoseconds) * 1e-9) / Double(units)
  }
}

/// Held by every closure of a workload: when it goes, the last closure has been released.
///
/// That, not the finish of the last operation, is the end of a round; teardown on a queue's thread would otherwise land in
/// the next sample.
final class Lifetime: Sendable {
  private let end: DispatchSemaphore

  private init(_ end: DispatchSemaphore) { self.end = end }

  deinit { end.signal() }

  /// Calls `body`, and returns when nothing holds the lifetime any more.
  static func run(_ body: (Lifetime) -> Void) {
    let end = DispatchSemaphore(value: 0)
    body(Lifetime(end))
    end.wait()
  }
}
