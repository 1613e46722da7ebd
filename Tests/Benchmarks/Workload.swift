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
/// That, not the finish of the last operation, is the end of a round; teardown on a queue's thread would otherwise land
/// in the next sample. It comes in shards, or the threads would spend their time counting references to the same
/// object.
final class Lifetime: Sendable {
  private let end: DispatchGroup

  init(_ end: DispatchGroup) {
    self.end = end
    end.enter()
  }

  deinit { end.leave() }

  /// Calls `body` with lifetimes to hold, for the operation of each index, and returns when nothing holds any of them.
  static func run(_ body: (_ lifetime: (Int) -> Lifetime) -> Void) {
    let end = DispatchGroup()
    let shards = (0..<64).map { _ in Lifetime(end) }
    body { shards[$0 % shards.count] }
    withExtendedLifetime(shards) {}
    end.wait()
  }
}
