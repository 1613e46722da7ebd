import Foundation

/// A row of the table: how the times of two workloads compare, in one run on one machine.
struct Benchmark: Sendable {
  enum Target: Sendable, CustomStringConvertible {
    case atLeast(Double, aim: Double)
    case atMost(Double)
    /// For information.
    case none

    var description: String {
      switch self {
      case .atLeast(let bound, let aim) where aim > bound: ">= \(Report.number(bound)), aim \(Report.number(aim))"
      case .atLeast(let bound, _): ">= \(Report.number(bound))"
      case .atMost(let bound): "<= \(Report.number(bound))"
      case .none: "none"
      }
    }

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
  /// The ratio is the time of the first divided by the time of the second.
  let numerator: Workload
  let denominator: Workload
  let target: Target

  init(_ name: String, of unit: String, _ numerator: Workload, over denominator: Workload, _ target: Target = .none) {
    (self.name, self.unit, self.target) = (name, unit, target)
    (self.numerator, self.denominator) = (numerator, denominator)
  }

  /// Compares four times as much of something with the thing itself: 4 is linear, 16 quadratic.
  static func growth(
    _ name: String,
    _ unit: String,
    of count: Int,
    target: Target = .atMost(6),
    _ run: @escaping @Sendable (Int) -> Void
  ) -> Self {
    func workload(_ count: Int) -> Workload { Workload(name: "\(count)", units: 1) { run(count) } }
    let unit = "round of \(4 * count) or \(count) \(unit)"
    return Benchmark(name, of: unit, workload(4 * count), over: workload(count), target)
  }

  /// Measures both workloads alternately, after a round that does not count.
  func measure(rounds: Int) -> Measurement {
    _ = (numerator.measure(0), denominator.measure(0))
    let samples = (1...rounds).map { round in
      // They take turns, because the first may leave the machine warmer for the second.
      let first = round.isMultiple(of: 2) ? numerator.measure(round) : nil
      let denominator = denominator.measure(round)
      return (numerator: first ?? numerator.measure(round), denominator: denominator)
    }
    let ratio = Spread(samples.map { $0.numerator / $0.denominator })
    return Measurement(
      name: name,
      unit: unit,
      numerator: numerator.name,
      denominator: denominator.name,
      target: "\(target)",
      ratio: ratio,
      numeratorNanoseconds: Spread(samples.map(\.numerator)),
      denominatorNanoseconds: Spread(samples.map(\.denominator)),
      isTargetMet: target.isMet(by: ratio.median)
    )
  }
}

/// Median, minimum and maximum.
struct Spread: Encodable {
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

struct Measurement: Encodable {
  let name, unit, numerator, denominator, target: String
  let ratio, numeratorNanoseconds, denominatorNanoseconds: Spread
  let isTargetMet: Bool
}

/// The measurements for people, or for programs.
enum Report {
  static func table(_ measurements: [Measurement]) -> String {
    let rows = measurements.map { measurement in
      [
        measurement.name,
        number(measurement.ratio.median),
        number(measurement.ratio.minimum),
        number(measurement.ratio.maximum),
        measurement.target,
        measurement.isTargetMet ? "yes" : "NO",
        time(measurement.numeratorNanoseconds) + " / " + time(measurement.denominatorNanoseconds),
        "\(measurement.numerator) / \(measurement.denominator) (a \(measurement.unit))",
      ]
    }
    let header = ["benchmark", "median", "min", "max", "target", "met", "medians", "times compared"]
    let table = [header] + rows
    let widths = header.indices.map { column in table.map { $0[column].count }.max() ?? 0 }
    return table.map { row in
      zip(row, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }.joined(separator: "  ")
    }.joined(separator: "\n")
  }

  static func json(_ measurements: [Measurement]) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return String(decoding: try encoder.encode(measurements), as: UTF8.self)
  }

  static func number(_ value: Double) -> String { String(format: value >= 100 ? "%.0f" : "%.2f", value) }

  private static func time(_ nanoseconds: Spread) -> String {
    let value = nanoseconds.median
    return value >= 10_000 ? String(format: "%.1f µs", value / 1000) : String(format: "%.0f ns", value)
  }
}
