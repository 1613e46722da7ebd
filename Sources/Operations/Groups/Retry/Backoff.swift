import Foundation

/// How long to wait before trying again.
public struct Backoff: Sendable {
  private let delay: @Sendable (Int) -> Duration

  /// - Parameter delay: The pause after an attempt has failed; the first is attempt 1. None if it is not positive.
  public init(_ delay: @escaping @Sendable (_ attempt: Int) -> Duration) { self.delay = delay }

  /// Tries again at once.
  public static var immediate: Self { Self { _ in .zero } }

  /// Waits equally long each time.
  public static func constant(_ delay: Duration) -> Self {
    if delay < .zero { misuse("A backoff cannot wait \(delay): give it a duration from zero up.") }
    return Self { _ in delay }
  }

  /// Waits longer each time: `initial` after the first attempt, then `multiplier` times what it was before, but never
  /// longer than `cap`.
  ///
  /// - Parameters:
  ///   - initial: The first pause.
  ///   - multiplier: How much longer each pause is than the one before.
  ///   - cap: The longest pause.
  ///   - jitter: How much of each pause is left to chance, from 0 to 1, so that many who failed together do not come
  ///     back together. With 0.5 a pause of 8 s takes from 4 s to 8 s, with 1 from none at all.
  public static func exponential(
    initial: Duration,
    multiplier: Double = 2,
    cap: Duration,
    jitter: Double = 0
  ) -> Self {
    if initial < .zero || cap < .zero {
      misuse("A backoff waits from zero up; this one is to wait \(initial), at most \(cap).")
    }
    if !(multiplier > 0 && multiplier.isFinite) {
      misuse("A backoff's multiplier is more than zero, not \(multiplier).")
    }
    if !(0...1).contains(jitter) { misuse("A backoff's jitter is a part of the pause, from 0 to 1, not \(jitter).") }
    return Self { attempt in
      if initial == .zero { return .zero }
      let growth = pow(multiplier, Double(attempt - 1))
      // Compared as numbers: what is beyond the cap may be more than a Duration holds.
      let pause = initial / .seconds(1) * growth < cap / .seconds(1) ? initial * growth : cap
      return jitter == 0 ? pause : pause * (1 - jitter * Double.random(in: 0...1))
    }
  }

  /// The pause after an attempt has failed.
  ///
  /// - Precondition: `attempt` is 1, for the first, or more.
  public func delay(after attempt: Int) -> Duration {
    if attempt < 1 { misuse("A backoff has no pause after attempt \(attempt): the first attempt is 1.") }
    return delay(attempt)
  }
}
