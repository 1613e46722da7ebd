import Foundation

extension Operation {
  var shownName: String { "“\(displayName.inOneLine)”" }
}

extension String {
  var inOneLine: String { String(String.UnicodeScalarView(unicodeScalars.map(\.shown))) }

  var brief: String { inOneLine.shortened(to: 60) }

  var columns: Int { reduce(0) { $0 + $1.columns } }

  func padded(to columns: Int) -> String { self + String(repeating: " ", count: max(0, columns - self.columns)) }

  /// Omits the middle, because names that begin alike often differ in their last characters.
  func shortened(to columns: Int) -> String {
    if self.columns <= columns { return self }
    let room = columns - 1
    let start = prefix(fitting: room / 2)
    let end = String(String(reversed()).prefix(fitting: room - start.columns).reversed())
    return start + "…" + end
  }

  private func prefix(fitting columns: Int) -> String {
    var taken = 0
    let fitting = prefix { character in
      taken += character.columns
      return taken <= columns
    }
    return String(fitting)
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
  /// The scalar, or a visible replacement. Unicode has pictures of the ASCII control codes.
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
