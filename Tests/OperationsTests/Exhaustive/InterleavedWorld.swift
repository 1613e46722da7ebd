/// What actors share: the value under test, and what has to be remembered to see whether it keeps its promises.
protocol InterleavedWorld {
  associatedtype Fingerprint: Hashable

  /// All that decides what can happen from here on, and whether it may.
  var fingerprint: Fingerprint { get }

  /// A promise that has been broken.
  var breach: String? { get }

  /// The same, when nobody can go on.
  ///
  /// - Parameter waiting: How many actors have something left to do.
  func breachAtEnd(waiting: Int) -> String?
}
