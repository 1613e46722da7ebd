import Foundation

/// What has to be the case for an operation to execute.
///
/// Evaluated when everything the operation waits for has finished, and before it executes:
///
/// ```swift
/// upload.addCondition(
///   OperationCondition(name: "signed in") { _ in
///     guard await session.isSignedIn else { throw SessionError.signedOut }
///   }
/// )
/// ```
///
/// An operation whose condition is not met does not execute: it finishes with ``OperationError/Code/conditionFailed``,
/// which names the condition and carries the error it threw.
public struct OperationCondition: Sendable {
  /// What errors call the condition.
  public let name: String
  let evaluate: @Sendable (AsyncOperation) async throws -> Void

  /// - Parameters:
  ///   - name: What errors call it.
  ///   - evaluate: Throws if the condition is not met. It may wait, which holds no thread, and is cancelled with the
  ///     operation, which does not wait for it to return.
  public init(name: String, _ evaluate: @escaping @Sendable (AsyncOperation) async throws -> Void) {
    self.name = name
    self.evaluate = evaluate
  }

  /// No operation that this one waits for has an error. What a plain Foundation operation met with is not known.
  public static var noFailedDependencies: Self {
    Self(name: "no failed dependencies") { operation in
      let failed = operation.dependencies.compactMap { $0 as? AsyncOperation }.filter { !$0.errors.isEmpty }
      if failed.isEmpty { return }
      throw UnmetCondition(reason: "\(failed.quotedNames) failed", causes: failed.flatMap(\.errors))
    }
  }

  /// No operation that this one waits for was cancelled, plain Foundation operations included.
  public static var noCancelledDependencies: Self {
    Self(name: "no cancelled dependencies") { operation in
      let cancelled = operation.dependencies.filter(\.isCancelled)
      if cancelled.isEmpty { return }
      let causes = cancelled.compactMap { $0 as? AsyncOperation }.flatMap(\.errors)
      throw UnmetCondition(reason: "\(cancelled.quotedNames) was cancelled", causes: causes)
    }
  }

  /// Met if `condition` is not.
  public static func not(_ condition: Self) -> Self {
    Self(name: "not \(condition.name)") { operation in
      do { try await condition.evaluate(operation) } catch { return }
      throw UnmetCondition(reason: "“\(condition.name)” is met", causes: [])
    }
  }

  /// Met if one of the conditions is; they are evaluated in order, up to that one. Of none, none is met.
  public static func any(_ conditions: Self...) -> Self {
    Self(name: "any of " + conditions.map(\.name).joined(separator: ", ")) { operation in
      var causes: [any Error] = []
      for condition in conditions {
        do { return try await condition.evaluate(operation) } catch { causes += UnmetCondition(error).causes }
      }
      throw UnmetCondition(reason: "none of them is met", causes: causes)
    }
  }

  /// Met if all of the conditions are; they are evaluated in order, up to the first that is not. Without any it is met.
  public static func all(_ conditions: Self...) -> Self {
    Self(name: "all of " + conditions.map(\.name).joined(separator: ", ")) { operation in
      for condition in conditions { try await condition.evaluate(operation) }
    }
  }

  /// The error of an operation that did not execute because of this condition.
  func failure(of operation: AsyncOperation, because error: any Error) -> OperationError {
    let unmet = UnmetCondition(error)
    let message = "\(operation.quotedName) was not executed, for its condition “\(name)” is not met"
    return OperationError(
      .conditionFailed,
      "\(message): \(unmet.reason).",
      underlyingErrors: RootCauses(of: unmet.causes).bounded(unmet.causes)
    )
  }
}
