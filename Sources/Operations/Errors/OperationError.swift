public import Foundation

/// An error of an operation or a scheduler. Programmer errors trap instead.
///
/// The error is a struct with a code, so that new codes do not break a client's `switch`. Two errors with the same code
/// are equal, whatever their messages and causes.
///
/// ```swift
/// do {
///   try await queue.run(operation)
/// } catch OperationError.Code.timedOut {
///   retryLater()
/// }
/// ```
public struct OperationError: LocalizedError, Equatable, CustomStringConvertible {
  /// The kind of an error.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The operation ran longer than its timeout allowed.
    public static let timedOut = Code("timedOut")
    /// The operation or the task waited longer than its wait limit allowed. The message names what it waited for.
    public static let expired = Code("expired")
    /// Operations depend on each other in a cycle.
    public static let dependencyCycle = Code("dependencyCycle")
    /// A condition of the operation was not met, so it did not execute.
    public static let conditionFailed = Code("conditionFailed")
    /// The operation has no input. Its producer finished without a value, or the input was never set.
    public static let inputUnavailable = Code("inputUnavailable")
    /// The operation finished without its value.
    public static let outputMissing = Code("outputMissing")
    /// Another operation holds or waits for a key that this one requested, and the policy of the request excludes waiting.
    public static let excluded = Code("excluded")
    /// A newer operation replaced the operation, under ``ExclusivityPolicy/replace``. The message names the newer one.
    public static let replaced = Code("replaced")
    /// A wait could never end, or the claim to a key is stronger than that of a holder around it.
    public static let waitCycle = Code("waitCycle")
    /// A scheduler had no room for an event, or no thread was left for another blocked scheduler.
    public static let overflow = Code("overflow")
    /// The scheduler has been shut down, or the operation was added to a group that had finished.
    public static let shutDown = Code("shutDown")

    /// The name of the code, as written in Swift.
    public let description: String

    private init(_ name: String) { description = name }
  }

  /// The kind of the error, for programs to check.
  public let code: Code
  /// A message for people that describes what happened, and names the operation.
  public let message: String
  /// The errors that caused this one, if any.
  public let underlyingErrors: [any Error]
  let rootCauses: RootCauses
  /// The first producer without a value, and why it has none.
  private var origin: String?

  /// Creates an error with a code, a message for people, and the errors that caused it.
  public init(_ code: Code, _ message: String, underlyingErrors: [any Error] = []) {
    self.code = code
    self.message = message
    self.underlyingErrors = underlyingErrors
    rootCauses = RootCauses(of: underlyingErrors)
  }

  public static func == (left: Self, right: Self) -> Bool { left.code == right.code }

  public var errorDescription: String? { description }

  /// The message, followed by the root causes that the message does not mention.
  public var description: String {
    let causes = rootCauses.description { !message.contains($0) }
    return causes.isEmpty ? message : message + " Cause: " + causes
  }
}

/// Matches an error by its code, so that a `catch` clause can name it: `catch OperationError.Code.timedOut { … }`.
public func ~= (code: OperationError.Code, error: any Error) -> Bool {
  (error as? OperationError)?.code == code
}

/// Returns the localized description of an error, its Swift description, or the name of its type, in that order.
func describe(_ error: any Error) -> String {
  if error is CancellationError { return "cancelled" }
  let text = (error as? any LocalizedError)?.errorDescription ?? String(describing: error)
  return text.isEmpty ? String(describing: type(of: error)) : text
}

extension OperationError {
  /// Whether the operation has no input because a producer had no value. It is false if the input was never set.
  var isOfFailedProducer: Bool { code == .inputUnavailable && !underlyingErrors.isEmpty }

  static func inputUnavailable(to consumer: Operation, from producer: Operation, because cause: any Error) -> Self {
    let origin = (cause as? OperationError)?.origin
    let event = cause is CancellationError ? "was cancelled" : "failed"
    let roots = RootCauses(of: [cause])
    let details = roots.description()
    var error = OperationError(
      .inputUnavailable,
      "\(consumer.quotedName) has no input from \(producer.quotedName), "
        + (origin.map { "because \($0)" } ?? "which \(event)") + (details.isEmpty ? "." : ": \(details)"),
      underlyingErrors: roots.bounded([cause])
    )
    error.origin = origin ?? "\(producer.quotedName) \(event)"
    return error
  }
}
