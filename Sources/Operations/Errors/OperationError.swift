public import Foundation

/// What can go wrong with an operation of a correct program.
///
/// A struct with a code, so that codes can be added without breaking a `switch` of yours. Two errors are equal if their
/// codes are: the message and the causes are for people.
///
/// ```swift
/// do {
///   try await queue.run(operation)
/// } catch OperationError.Code.timedOut {
///   retryLater()
/// }
/// ```
public struct OperationError: Error, Equatable {
  /// What went wrong, without the details.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    /// The operation ran longer than its timeout allowed.
    public static let timedOut = Code("timedOut")
    /// Operations of a group wait for each other in a circle.
    public static let dependencyCycle = Code("dependencyCycle")
    /// A condition of the operation was not met, so it did not execute.
    public static let conditionFailed = Code("conditionFailed")
    /// The operation that was to deliver the input ended without one.
    public static let inputUnavailable = Code("inputUnavailable")
    /// The operation finished without the value it was to deliver.
    public static let outputMissing = Code("outputMissing")
    /// Another operation holds, or waits for, a key that this one wanted, and its policy was not to wait.
    public static let excluded = Code("excluded")
    /// Schedulers, or groups that hold keys, would wait for each other in a circle.
    public static let waitCycle = Code("waitCycle")
    /// A scheduler had no room for an event, or no thread was left for a further blocked scheduler.
    public static let overflow = Code("overflow")
    /// The scheduler has been shut down.
    public static let shutDown = Code("shutDown")

    /// The code's name, as it is written in Swift.
    public let description: String

    private init(_ name: String) { description = name }
  }

  /// What kind of thing went wrong, for code to look at.
  public let code: Code
  /// A sentence that says what happened, to which operation, by name.
  public let message: String
  /// The errors that led to this one, if any.
  public let underlyingErrors: [any Error]
  let rootCauses: RootCauses

  /// - Parameters:
  ///   - code: What kind of thing went wrong.
  ///   - message: What happened, to which operation, for people to read.
  ///   - underlyingErrors: What it came of.
  public init(_ code: Code, _ message: String, underlyingErrors: [any Error] = []) {
    self.code = code
    self.message = message
    self.underlyingErrors = underlyingErrors
    rootCauses = RootCauses(of: underlyingErrors)
  }

  public static func == (left: Self, right: Self) -> Bool { left.code == right.code }
}

extension OperationError: LocalizedError, CustomStringConvertible {
  public var errorDescription: String? { description }

  /// The message, and what is at the bottom of the causes, as far as it does not speak of them.
  public var description: String {
    let causes = rootCauses.description { !message.contains($0) }
    return causes.isEmpty ? message : message + " Cause: " + causes
  }
}

/// Lets a `catch` clause name the code alone: `catch OperationError.Code.timedOut { … }`.
public func ~= (code: OperationError.Code, error: any Error) -> Bool {
  (error as? OperationError)?.code == code
}

/// An error as a person would want to read it: its own words if it has some, else its Swift description; the name of
/// its type if that is empty, for a sentence that ends in nothing says nothing.
func describe(_ error: any Error) -> String {
  if error is CancellationError { return "cancelled" }
  let text = (error as? any LocalizedError)?.errorDescription ?? String(describing: error)
  return text.isEmpty ? String(describing: type(of: error)) : text
}
