/// The words of a piece of text: maximal runs of characters that are not white space.
///
/// It records whether a word touches the ends, because the word may continue in the next piece.
struct Words: Equatable, Sendable {
  private(set) var count = 0
  private var isEmpty = true
  private var beginsInWord = false
  private var endsInWord = false

  /// The words of no text.
  init() {}

  init(in text: String) {
    var isInWord = false
    for scalar in text.unicodeScalars {
      let isInside = !Words.isWhiteSpace(scalar)
      if isInside, !isInWord { count += 1 }
      isInWord = isInside
    }
    guard let first = text.unicodeScalars.first else { return }
    isEmpty = false
    beginsInWord = !Words.isWhiteSpace(first)
    endsInWord = isInWord
  }

  /// Returns the words of two consecutive pieces. A word that continues from the left to the right counts once.
  static func + (left: Words, right: Words) -> Words {
    if left.isEmpty { return right }
    if right.isEmpty { return left }
    var sum = left
    sum.count += right.count - (left.endsInWord && right.beginsInWord ? 1 : 0)
    sum.endsInWord = right.endsInWord
    return sum
  }

  /// Returns whether the character has the Unicode property `White_Space`. Reading `properties` takes several times as
  /// long.
  @inline(__always)
  private static func isWhiteSpace(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x09...0x0D, 0x20: true
    case ..<0x80: false
    case 0x85, 0xA0, 0x1680, 0x2000...0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000: true
    default: false
    }
  }
}
