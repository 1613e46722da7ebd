extension Duration {
  /// The longest there is: what would be more is that.
  private static let longest = Duration(attoseconds: .max)
  private static let shortest = Duration(attoseconds: .min)

  /// The sum, or the longest or shortest there is if a Duration holds no more: what is not meant to end does not
  /// overflow.
  package func adding(_ other: Duration) -> Duration {
    let (sum, isOverflow) = attoseconds.addingReportingOverflow(other.attoseconds)
    if isOverflow { return other < .zero ? Self.shortest : Self.longest }
    return Duration(attoseconds: sum)
  }

  /// The difference, within the same bounds.
  package func subtracting(_ other: Duration) -> Duration {
    let (difference, isOverflow) = attoseconds.subtractingReportingOverflow(other.attoseconds)
    if isOverflow { return other < .zero ? Self.longest : Self.shortest }
    return Duration(attoseconds: difference)
  }
}
