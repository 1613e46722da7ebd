/// A row of the table: how the times of two workloads compare, in one run on one machine.
struct Benchmark: Sendable {
  enum Target: Sendable {
    case atLeast(Double, aim: Double)
    case atMost(Double)
    /// For information.
    case none

    func isMet(by ratio: Double) -> Bool {
      switch self {
      case .atLeast(let bound, _): ratio >= bound
      case .atMost(let bound): ratio <= bound
      case .none: true
      }
    }
  }

  let name: String
  /// What a unit is.
  let unit: String
  /// The ratio is the time of the first by the time of the second.
  let numerator: Workload
  let denominator: Workload
  let target: Target

  /// Measures both workloads alternately, after a round that does not count.
  func measure(rounds: Int) -> Measurement {
    _ = (numerator.measure(), denominator.measure())
    let samples = (0..<rounds).map { round in
      // Whichever goes first may leave the machine warmer for the other: they take turns.
      if round.isMultiple(of: 2) {
        let first = numerator.measure()
        return (numerator: first, denominator: denominator.measure())
      }
      let first = denominator.measure()
      return (numerator: numerator.measure(), denominator: first)
    }
    return Measurement(
      benchmark: self,
      ratio: Spread(samples.map { $0.numerator / $0.denominator }),
      numerator: Spread(samples.map(\.numerator)),
      denominator: Spread(samples.map(\.denominator))
    )
  }
}

/// Median, minimum and maximum.
struct Spread: Codable, Sendable {
  let median: Double
  let minimum: Double
  let maximum: Double

  init(_ samples: [Double]) {
    let sorted = samples.sorted()
    let middle = sorted.count / 2
    median = sorted.count.isMultiple(of: 2) ? (sorted[middle - 1] + sorted[middle]) / 2 : sorted[middle]
    minimum = sorted[0]
    maximum = sorted[sorted.count - 1]
  }
}

struct Measurement {
  let benchmark: Benchmark
  let ratio: Spread
  let numerator: Spread
  let denominator: Spread

  var isTargetMet: Bool { benchmark.target.isMet(by: ratio.median) }
}
