import Foundation

/// The measurements for people, or for programs.
enum Report {
  static func table(_ measurements: [Measurement]) -> String {
    let rows = measurements.map { measurement in
      [
        measurement.benchmark.name,
        number(measurement.ratio.median),
        number(measurement.ratio.minimum),
        number(measurement.ratio.maximum),
        describe(measurement.benchmark.target),
        measurement.isTargetMet ? "yes" : "NO",
        time(measurement.numerator) + " / " + time(measurement.denominator),
        measurement.benchmark.numerator.name + " / " + measurement.benchmark.denominator.name
          + " (a " + measurement.benchmark.unit + ")",
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
    struct Row: Encodable {
      let name, unit, numerator, denominator, target: String
      let ratio, numeratorNanoseconds, denominatorNanoseconds: Spread
      let isTargetMet: Bool
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    let rows = measurements.map { measurement in
      Row(
        name: measurement.benchmark.name,
        unit: measurement.benchmark.unit,
        numerator: measurement.benchmark.numerator.name,
        denominator: measurement.benchmark.denominator.name,
        target: describe(measurement.benchmark.target),
        ratio: measurement.ratio,
        numeratorNanoseconds: measurement.numerator,
        denominatorNanoseconds: measurement.denominator,
        isTargetMet: measurement.isTargetMet
      )
    }
    return String(decoding: try encoder.encode(rows), as: UTF8.self)
  }

  private static func describe(_ target: Benchmark.Target) -> String {
    switch target {
    case .atLeast(let bound, let aim) where aim > bound: ">= \(number(bound)), aim \(number(aim))"
    case .atLeast(let bound, _): ">= \(number(bound))"
    case .atMost(let bound): "<= \(number(bound))"
    case .none: "none"
    }
  }

  private static func number(_ value: Double) -> String {
    String(format: value >= 100 ? "%.0f" : "%.2f", value)
  }

  private static func time(_ nanoseconds: Spread) -> String {
    let value = nanoseconds.median
    return value >= 10_000 ? String(format: "%.1f µs", value / 1000) : String(format: "%.0f ns", value)
  }
}
