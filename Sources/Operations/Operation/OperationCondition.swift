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

  /// Not available: a closure that returns false would count as met.
  @available(*, deprecated, message: "Throw an error if the condition is not met: if !isMet { throw NotMet() }")
  @available(*, noasync, message: "Throw an error if the condition is not met: if !isMet { throw NotMet() }")
  @UnmetConditionsThrow
  public init<Value: ExpressibleByBooleanLiteral>(
    name: String,
    _ evaluate: @escaping @Sendable (AsyncOperation) async throws -> Value
  ) { misuse("The condition “\(name)” cannot return a value. Throw an error if it is not met.") }

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

  func failure(of operation: AsyncOperation, because error: any Error) -> OperationError {
    let unmet = UnmetCondition(error)
    let message = "\(operation.quotedName) did not run because its condition “\(name)” was not met: \(unmet.reason)."
    let causes = RootCauses(of: unmet.causes).bounded(unmet.causes)
    return OperationError(.conditionFailed, message, underlyingErrors: causes)
  }
}

/// Names the remedy in an error of the compiler: only a condition that returns a `Bool` has this isolation, and no code.
@globalActor
public enum UnmetConditionsThrow { public static let shared = MainActor.shared }

extension AsyncOperation {
  /// Adds a condition that must be met for the operation to execute.
  ///
  /// Conditions are evaluated when all dependencies have finished, in the order they were added, up to the first that
  /// is not met. During the evaluation, the operation is pending, occupies its slot in its queue or group, and holds no
  /// thread. Cancelling or finishing it then ends it at once. All see the task-local values of the task that adds the first.
  ///
  /// If all conditions are met, the operation executes in the place where it would have executed without them: on the
  /// scheduler in ``SerialScheduler/queue``, on a thread of the group in a group, on the main queue in
  /// `OperationQueue.main`. In another queue, it executes on the `underlyingQueue` or on a thread of the system.
  ///
  /// In a group and on the main thread, conditions do not change `OperationQueue.current`. Elsewhere the property is
  /// then nil, because Foundation sets it only where it starts an operation. Suspending the queue during the evaluation
  /// does not delay the execution, because the operation has been started.
  ///
  /// - Precondition: The operation has not been started.
  public final func addCondition(_ condition: OperationCondition) {
    let context = TaskContext()
    let isTooLate = core.withLock { core in
      if !core.lifecycle.phase.isPending { return true }
      let extras = core.makeExtras()
      if extras.conditions.isEmpty { extras.context = context }
      extras.conditions.append(condition)
      return false
    }
    if isTooLate {
      let problem = "\(quotedName) has been started: it is too late for its condition “\(condition.name)”."
      misuse(problem + " Add conditions before the operation is added to a queue or a group.")
    }
  }
}

private struct UnmetCondition: Error {
  let reason: String
  let causes: [any Error]
}

extension UnmetCondition {
  init(_ error: any Error) { self = error as? Self ?? Self(reason: describe(error), causes: [error]) }
}
