import Foundation

/// A condition that must be met for an operation to execute.
///
/// An operation evaluates its conditions when all of its dependencies have finished, before it executes:
///
/// ```swift
/// upload.addCondition(
///   OperationCondition(name: "signed in") { _ in
///     guard await session.isSignedIn else { throw SessionError.signedOut }
///   }
/// )
/// ```
///
/// If a condition is not met, the operation finishes without executing. Its error has the code
/// ``OperationError/Code/conditionFailed``, names the condition, and contains the error that the condition threw.
public struct OperationCondition: Sendable {
  /// The name that errors use for the condition.
  public let name: String
  let evaluate: @Sendable (AsyncOperation) async throws -> Void

  /// Creates a condition.
  ///
  /// - Parameters:
  ///   - name: The name that errors use for the condition.
  ///   - evaluate: A closure that throws an error if the condition is not met. It runs in a task that is cancelled with
  ///     the operation. A cancelled operation finishes without waiting for the closure.
  public init(name: String, _ evaluate: @escaping @Sendable (AsyncOperation) async throws -> Void) {
    self.name = name
    self.evaluate = evaluate
  }

  /// A condition that is met if no dependency has an error. A plain Foundation operation reports no errors.
  public static var noFailedDependencies: Self {
    Self(name: "no failed dependencies") { operation in
      let failed = operation.dependencies.compactMap { $0 as? AsyncOperation }.filter { !$0.errors.isEmpty }
      if failed.isEmpty { return }
      throw UnmetCondition(reason: "\(failed.quotedNames) failed", causes: failed.flatMap(\.errors))
    }
  }

  /// A condition that is met if no dependency was cancelled, including plain Foundation operations.
  public static var noCancelledDependencies: Self {
    Self(name: "no cancelled dependencies") { operation in
      let cancelled = operation.dependencies.filter(\.isCancelled)
      if cancelled.isEmpty { return }
      let causes = cancelled.compactMap { $0 as? AsyncOperation }.flatMap(\.errors)
      throw UnmetCondition(reason: "\(cancelled.quotedNames) was cancelled", causes: causes)
    }
  }

  /// Returns a condition that is met if `condition` is not met.
  public static func not(_ condition: Self) -> Self {
    Self(name: "not \(condition.name)") { operation in
      do { try await condition.evaluate(operation) } catch { return }
      throw UnmetCondition(reason: "“\(condition.name)” is met", causes: [])
    }
  }

  /// Returns a condition that is met if one of `conditions` is met.
  ///
  /// The conditions are evaluated in order, up to the first that is met. An empty list is not met.
  public static func any(_ conditions: Self...) -> Self {
    Self(name: "any of " + conditions.map(\.name).joined(separator: ", ")) { operation in
      var causes: [any Error] = []
      for condition in conditions {
        do { return try await condition.evaluate(operation) } catch { causes += UnmetCondition(error).causes }
      }
      throw UnmetCondition(reason: "none of them is met", causes: causes)
    }
  }

  /// Returns a condition that is met if all of `conditions` are met.
  ///
  /// The conditions are evaluated in order, up to the first that is not met. An empty list is met.
  public static func all(_ conditions: Self...) -> Self {
    Self(name: "all of " + conditions.map(\.name).joined(separator: ", ")) { operation in
      for condition in conditions { try await condition.evaluate(operation) }
    }
  }

  /// Returns the error of an operation that did not execute because of this condition.
  func failure(of operation: AsyncOperation, because error: any Error) -> OperationError {
    let unmet = UnmetCondition(error)
    let message = "\(operation.quotedName) did not run because its condition “\(name)” was not met"
    return OperationError(
      .conditionFailed,
      "\(message): \(unmet.reason).",
      underlyingErrors: RootCauses(of: unmet.causes).bounded(unmet.causes)
    )
  }
}

/// The reason why a condition is not met, and the errors that caused it.
struct UnmetCondition: Error {
  let reason: String
  let causes: [any Error]

  init(reason: String, causes: [any Error]) {
    self.reason = reason
    self.causes = causes
  }

  /// Wraps an error that a condition threw, unless it is an `UnmetCondition` already.
  init(_ error: any Error) {
    self = error as? UnmetCondition ?? UnmetCondition(reason: describe(error), causes: [error])
  }
}
