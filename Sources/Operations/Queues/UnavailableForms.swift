public import Foundation

/// Forms that callers try, and that the compiler refuses with a message that says what to write instead.

/// Not available: a closure must become an operation first.
@available(*, unavailable, message: "A closure is not an operation. Wrap it: a ==> ResultOperation { … }")
@discardableResult
public func ==> <T>(lhs: Operation, rhs: () async throws -> T) -> Operation { lhs }

/// Not available: a name must become an operation first.
@available(*, unavailable, message: "A name is not an operation. Name the operation: a ==> b.named(\"b\")")
@discardableResult
public func ==> (lhs: Operation, rhs: String) -> Operation { lhs }

// Members of a protocol, so that subclasses can declare and override methods with these names.
extension Hashable where Self: AsyncOperation {
  /// Not available: a queue runs operations.
  @available(*, unavailable, message: "A queue runs the operation: try await queue.run(operation)")
  public func run() async throws {}

  /// Not available: an operation runs once.
  @available(*, unavailable, message: "An operation runs once. Make new ones: RetryOperation(attempts: 3) { _ in … }")
  @discardableResult
  public func retry(_ attempts: Int) -> Self { self }
}

extension AsyncOperation {
  /// Not available: a key can be any value, so that a variable must say that it is one.
  @available(*, unavailable, message: "Make a key of the string: exclusive(ExclusivityKey(name))")
  @discardableResult
  public final func exclusive(_ names: String..., in domain: ExclusivityDomain = .shared) -> Self { self }
}

/// Not available: a task says how it holds the keys.
@available(*, unavailable, message: "Claim the key: withKeys(.exclusive(\"name\")) { … }")
public func withKeys<R>(_ keys: ExclusivityKey..., in domain: ExclusivityDomain = .shared, _ body: () async throws -> R)
  async throws -> R
{ try await body() }

@available(*, unavailable, message: "Catch the code: catch OperationError.Code.timedOut { … }")
extension OperationError {
  private static func none<T>() -> T { misuse("An error has no such code.") }
  /// Not available: the codes are members of ``Code``.
  public static let (
    timedOut, dependencyCycle, conditionFailed, outputMissing, excluded, replaced, waitCycle, overflow
  ): (Code, Code, Code, Code, Code, Code, Code, Code) = none()
}
