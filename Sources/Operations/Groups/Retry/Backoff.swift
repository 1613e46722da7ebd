import Foundation

/// The delays between attempts.
public struct Backoff: Sendable {
  private let delay: @Sendable (Int) -> Duration

  /// Creates a backoff from a closure.
  ///
  /// - Parameter delay: Returns the delay after a failed attempt. The first attempt is 1. A negative delay counts as
  ///   zero.
  public init(_ delay: @escaping @Sendable (_ attempt: Int) -> Duration) { self.delay = delay }

  /// A backoff without delays.
  public static var immediate: Self { Self { _ in .zero } }

  /// Returns a backoff whose delays are all equal. A negative delay traps.
  public static func constant(_ delay: Duration, file: StaticString = #fileID, line: UInt = #line) -> Self {
    if delay < .zero {
      misuse("A backoff cannot wait \(delay.text): give it a duration from zero up.", file: file, line: line)
    }
    return Self { _ in delay }
  }

  /// Returns a backoff whose delays grow exponentially.
  ///
  /// The delay after the first attempt is `initial`. Each further one is `multiplier` times the last, at most `cap`.
  ///
  /// - Parameters:
  ///   - initial: The first delay.
  ///   - multiplier: The ratio of each delay to the previous delay.
  ///   - cap: The longest delay, by default a minute. Neither it nor `initial` may be negative.
  ///   - jitter: The random part of each delay, from 0 to 1, so that operations that fail together do not retry
  ///     together. With 0.5, a delay of 8 s takes from 4 s to 8 s; with 1, from zero to 8 s.
  ///   - file: The calling file, for the message of a trap.
  ///   - line: The calling line, for the message of a trap.
  public static func exponential(
    initial: Duration,
    multiplier: Double = 2,
    cap: Duration = .seconds(60),
    jitter: Double = 0,
    file: StaticString = #fileID,
    line: UInt = #line
  ) -> Self {
    let problem: String? =
      if initial < .zero || cap < .zero {
        "A backoff waits from zero up; this one is to wait \(initial.text), at most \(cap.text)."
      } else if !(multiplier > 0 && multiplier.isFinite) {
        "A backoff's multiplier is more than zero, not \(multiplier)."
      } else if !(0...1).contains(jitter) {
        "A backoff's jitter is a part of the pause, from 0 to 1, not \(jitter)."
      } else {
        nil
      }
    if let problem { misuse(problem, file: file, line: line) }
    return Self { attempt in
      if initial == .zero { return .zero }
      let growth = pow(multiplier, Double(attempt - 1))
      // Compares numbers, because a delay beyond the cap may be longer than the longest `Duration`.
      let pause = initial / .seconds(1) * growth < cap / .seconds(1) ? initial * growth : cap
      let part = 1 - jitter * Double.random(in: 0...1)
      // A product with one could exceed the longest duration by rounding.
      return part == 1 ? pause : pause * part
    }
  }

  /// Returns the delay after a failed attempt.
  ///
  /// - Precondition: `attempt` is at least 1. The first attempt is 1.
  public func delay(after attempt: Int, file: StaticString = #fileID, line: UInt = #line) -> Duration {
    if attempt < 1 {
      misuse("A backoff has no pause after attempt \(attempt): the first attempt is 1.", file: file, line: line)
    }
    return delay(attempt)
  }
}
