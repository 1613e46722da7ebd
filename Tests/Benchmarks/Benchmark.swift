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
  static func growth(_ name: String, _ unit: String, of count: Int, _ run: @escaping @Sendable (Int) -> Void) -> Self {
    func workload(_ count: Int) -> Workload { Workload(name: "\(count)", units: 1) { run(count) } }
    let unit = "round of \(4 * count) or \(count) \(unit)"
    return Benchmark(name, of: unit, workload(4 * count), over: workload(count), .atMost(6))
  }

  /// Measures both workloads alternately, after a round that does not count.
  ///
  /// - Returns: A row of the table.
  func measure(rounds: Int) -> [String] {
    _ = (numerator.measure(0), denominator.measure(0))
    let samples = (1...rounds).map { round in
      // They take turns, because the first may leave the machine warmer for the second.
      let first = round.isMultiple(of: 2) ? numerator.measure(round) : nil
      let denominator = denominator.measure(round)
      return (numerator: first ?? numerator.measure(round), denominator: denominator)
    }
    let ratios = samples.map { $0.numerator / $0.denominator }
    let ratio = Report.median(ratios)
    return [
      name,
      Report.number(ratio),
      Report.number(ratios.min() ?? 0),
      Report.number(ratios.max() ?? 0),
      "\(target)",
      target.isMet(by: ratio) ? "yes" : "NO",
      Report.time(samples.map(\.numerator)) + " / " + Report.time(samples.map(\.denominator)),
      "\(numerator.name) / \(denominator.name) (a \(unit))",
    ]
  }
}

enum Report {
  static func table(_ rows: [[String]]) -> String {
    let header = ["benchmark", "median", "min", "max", "target", "met", "medians", "times compared"]
    let table = [header] + rows
    let widths = header.indices.map { column in table.map { $0[column].count }.max() ?? 0 }
    return table.map { row in
      zip(row, widths).map { $0.padding(toLength: $1, withPad: " ", startingAt: 0) }.joined(separator: "  ")
    }.joined(separator: "\n")
  }

  static func median(_ samples: [Double]) -> Double {
    let sorted = samples.sorted()
    return (sorted[(sorted.count - 1) / 2] + sorted[sorted.count / 2]) / 2
  }

  static func number(_ value: Double) -> String { String(format: value >= 100 ? "%.0f" : "%.2f", value) }

  static func time(_ nanoseconds: [Double]) -> String {
    let value = median(nanoseconds)
    return value >= 10_000 ? String(format: "%.1f µs", value / 1000) : String(format: "%.0f ns", value)
  }
}
