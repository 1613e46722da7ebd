import Foundation

extension Operation {
  /// The quoted name, without control characters.
  var shownName: String { "“\(displayName.inOneLine)”" }
}

extension String {
  /// The string with control characters, direction marks and noncharacters replaced by visible characters, so that a
  /// terminal shows the string in one line.
  var inOneLine: String { String(String.UnicodeScalarView(unicodeScalars.map(\.shown))) }

  /// The string in one line, shortened to fit into a sentence.
  var brief: String { inOneLine.shortened(to: 60) }

  /// The width in terminal columns. Wide East Asian characters and emoji take two.
  var columns: Int { reduce(0) { $0 + $1.columns } }

  /// Returns the string padded with spaces to a width in terminal columns.
  func padded(to columns: Int) -> String { self + String(repeating: " ", count: max(0, columns - self.columns)) }

  /// Returns the string shortened to a width in terminal columns.
  ///
  /// The middle is omitted, because names that begin alike often differ in their last characters.
  func shortened(to columns: Int) -> String {
    if self.columns <= columns { return self }
    let room = columns - 1
    let start = prefix(fitting: room / 2)
    let end = String(String(reversed()).prefix(fitting: room - start.columns).reversed())
    return start + "…" + end
  }

  private func prefix(fitting columns: Int) -> String {
    var (text, taken) = ("", 0)
    for character in self {
      taken += character.columns
      if taken > columns { break }
      text.append(character)
    }
    return text
  }
}

extension Character {
  fileprivate var columns: Int {
    guard let first = unicodeScalars.first else { return 0 }
    if first.properties.isEmojiPresentation || unicodeScalars.contains("\u{FE0F}") { return 2 }
    switch first.value {
    case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F,
      0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x20000...0x3FFFD:
      return 2
    case _ where first.properties.generalCategory == .format: return 0
    default: return 1
    }
  }
}

extension Unicode.Scalar {
  /// The scalar, or a visible replacement for a control character, a direction mark or a noncharacter. Unicode has
  /// pictures of the ASCII control codes.
  var shown: Unicode.Scalar {
    switch value {
    case 0..<0x20: Unicode.Scalar(0x2400 + value) ?? "\u{FFFD}"
    case 0x7F: "\u{2421}"
    case 0x80...0x9F, 0x200E, 0x200F, 0x2028...0x202E, 0x2066...0x2069: "\u{FFFD}"
    case _ where properties.isNoncharacterCodePoint: "\u{FFFD}"
    default: self
    }
  }
}

extension Duration {
  /// A short text with at most three digits and a unit: 12 µs, 3.4 ms, 2.5 s, 14 min.
  var reading: String {
    // `components` would trap if the seconds exceeded an `Int64`.
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

  private static func reading(_ value: Double, _ unit: String) -> String {
    if abs(value) >= 99.5 { return "\(Int(value.rounded())) \(unit)" }
    let tenths = Int((value * 10).rounded())
    return tenths.isMultiple(of: 10) ? "\(tenths / 10) \(unit)" : "\(tenths / 10).\(abs(tenths % 10)) \(unit)"
  }
}
