extension Duration {
  /// As one would say it: 12 µs, 3.4 ms, 2.5 s, 14 min.
  var reading: String {
    // Its `components` trap if there are more seconds than they can hold.
    let seconds = self / .seconds(1)
    switch abs(seconds) {
    case ..<0.000_000_5: return "0 s"
    case ..<0.000_999_5: return "\(Int((seconds * 1e6).rounded())) µs"
    case ..<0.999_5: return Self.reading(seconds * 1e3, "ms")
    case ..<119.5: return Self.reading(seconds, "s")
    case ..<7_170: return "\(Int((seconds / 60).rounded())) min"
    default: return "\(Int((seconds / 3600).rounded())) h"
    }
  }

  /// Three figures at most.
  private static func reading(_ value: Double, _ unit: String) -> String {
    if abs(value) >= 99.5 { return "\(Int(value.rounded())) \(unit)" }
    let tenths = Int((value * 10).rounded())
    return tenths.isMultiple(of: 10) ? "\(tenths / 10) \(unit)" : "\(tenths / 10).\(abs(tenths % 10)) \(unit)"
  }
}
