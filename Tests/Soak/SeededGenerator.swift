import Foundation

/// SplitMix64: the same numbers for the same seed, on every machine.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  /// The seeds of the stress tests; just the one of `RANDOM_GRAPH_SEED`, if that is set, to replay it.
  package static var seeds: [UInt64] { seeds(of: "RANDOM_GRAPH_SEED", else: 1...24) }

  /// Just the seed that an environment variable names, if it is set.
  package static func seeds(of variable: String, else seeds: ClosedRange<UInt64>) -> [UInt64] {
    if let seed = ProcessInfo.processInfo.environment[variable].flatMap(UInt64.init) { return [seed] }
    return Array(seeds)
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
  mutating func one(of count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }
}
