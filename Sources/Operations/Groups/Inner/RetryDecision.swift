/// Whether a ``RetryOperation`` is to try again, and when.
public struct RetryDecision: Sendable {
  let isRetry: Bool
  let delay: Duration?

  /// The error is final.
  public static var stop: Self { Self(isRetry: false, delay: nil) }

  /// Try again, after the pause that the backoff says.
  public static var retry: Self { Self(isRetry: true, delay: nil) }

  /// Try again after this pause, whatever the backoff says. At once if it is not positive.
  public static func retry(after delay: Duration) -> Self { Self(isRetry: true, delay: delay) }
}
