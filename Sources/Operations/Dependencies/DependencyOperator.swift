public import Foundation

/// The precedence of `==>`.
///
/// It is higher than that of assignment, the ternary operator and `??`, so that `let last = a ==> b` assigns `b`. It is
/// lower than that of addition, so that `[a] + list ==> b` makes `b` wait for `a` and all operations of `list`.
precedencegroup OperationChaining {
  associativity: left
  higherThan: AssignmentPrecedence, TernaryPrecedence, NilCoalescingPrecedence
  lowerThan: AdditionPrecedence
}

infix operator ==> : OperationChaining

/// Makes the right operation wait for the left one, and returns the right one: `a ==> b ==> c`.
///
/// The operations may be of any types, including plain Foundation operations, and may run in different queues.
///
/// - Precondition: The operations are different, and the right one has not been started.
@discardableResult
public func ==> <R: Operation>(lhs: Operation, rhs: R) -> R { rhs.waits(for: lhs) }

/// Makes the right operation wait for all of the left ones: `[b, c] ==> d`.
@discardableResult
public func ==> <R: Operation>(lhs: [Operation], rhs: R) -> R { rhs.waits(for: lhs) }

/// Makes all of the right operations wait for the left one: `a ==> [b, c]`.
@discardableResult
public func ==> (lhs: Operation, rhs: [Operation]) -> [Operation] { [lhs] ==> rhs }

/// Makes each of the right operations wait for all of the left ones.
@discardableResult
public func ==> (lhs: [Operation], rhs: [Operation]) -> [Operation] {
  for dependent in rhs { dependent.waits(for: lhs) }
  return rhs
}

/// Makes each operation wait for its predecessor in the array.
///
/// ```swift
/// queue.addOperations(chain(pages.map { Upload($0) }))
/// ```
///
/// - Precondition: The operations are different, and only the first may have been started.
/// - Returns: The operations.
@discardableResult
public func chain(_ operations: [Operation]) -> [Operation] {
  for (earlier, later) in zip(operations, operations.dropFirst()) { later.waits(for: earlier) }
  return operations
}

/// What a closure does on this thread, for its result builder.
final class DependencyRecorder {
  private static let current = ThreadLocal<DependencyRecorder>()
  /// The operations that `==>` and `waits(for:)` join.
  private var operations: [Operation] = []
  private var groups: [GroupOperation] = []

  /// Runs the result builder of a group. The returned groups are those that result builders inside it create, and this one.
  static func recording<Value>(
    for group: GroupOperation,
    _ body: () -> Value
  ) -> (value: Value, joined: [Operation], groups: [GroupOperation]) {
    let recorder = DependencyRecorder()
    let value = current.withValue(recorder, body)
    recorder.groups.append(group)
    if let outer = current.current {
      // Without a copy for groups that are nested many levels deep.
      if outer.groups.isEmpty { outer.groups = recorder.groups } else { outer.groups += recorder.groups }
    }
    return (value, recorder.operations, recorder.groups)
  }

  static func record(_ operations: @autoclosure () -> [Operation]) { current.current?.operations += operations() }
}

extension Operation {
  /// Makes the operation wait for `dependency`.
  ///
  /// The same as `dependency ==> self`, for files that import another module with an operator `==>`.
  @discardableResult
  public func waits(for dependency: Operation) -> Self {
    refuseSelfDependency(dependency)
    DependencyRecorder.record([dependency, self])
    addDependency(dependency)
    return self
  }

  /// Makes the operation wait for all of `dependencies`.
  @discardableResult
  public func waits(for dependencies: [Operation]) -> Self {
    for dependency in dependencies { waits(for: dependency) }
    return self
  }
}
