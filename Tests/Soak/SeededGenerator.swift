import Foundation

/// Whether large tests take their full size, as in `THOROUGH=1 swift test`, or a part of it.
package let isThorough = ProcessInfo.processInfo.environment["THOROUGH"] != nil

/// SplitMix64: the same numbers for the same seed, on every machine.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  /// The seeds of the stress tests.
  package static var seeds: [UInt64] { seeds(from: "RANDOM_GRAPH_SEED") }

  /// A few seeds, or more in a thorough run. An environment variable names the first one, and otherwise the only one.
  package static func seeds(from variable: String) -> [UInt64] {
    let first = ProcessInfo.processInfo.environment[variable].flatMap(UInt64.init)
    let count: UInt64 = isThorough ? 24 : first == nil ? 4 : 1
    return (0..<count).map { (first ?? 1) &+ $0 }
  }

  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }

  /// Whether a die with so many sides shows the one.
  package mutating func one(of count: Int) -> Bool { number(0...count - 1) == 0 }

  package mutating func number(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &self) }
}
