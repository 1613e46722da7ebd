public import Foundation

/// The result builder that collects the members of a group.
///
/// ```swift
/// let importer = GroupOperation("Import") {
///   download ==> parse ==> store  // takes in all three
///   for page in pages { fetch(page) }
///   if cleansUp { store ==> CleanUp() }
/// }
/// ```
///
/// The builder also adds the direct and indirect dependencies of each operation, if they have not started and are in no
/// queue or group. A repeated operation counts once.
///
/// The builder cannot detect that a plain Foundation operation is in a queue, or that an `AsyncOperation` was
/// enqueued by Foundation's own methods. If a member depends on such an operation, create the group from an array
/// instead.
@resultBuilder
public enum OperationBuilder {
  /// Adds an operation, for example the result of a `==>` chain.
  public static func buildExpression(_ operation: Operation) -> [Operation] { [operation] }
  /// Adds several operations.
  public static func buildExpression(_ operations: [Operation]) -> [Operation] { operations }
  /// Permits a statement without a value, such as `print()`.
  public static func buildExpression(_ nothing: ()) -> [Operation] { [] }
  /// Joins consecutive statements.
  public static func buildBlock(_ parts: [Operation]...) -> [Operation] { parts.flatMap(\.self) }
  /// Supports `if` without `else`.
  public static func buildOptional(_ part: [Operation]?) -> [Operation] { part ?? [] }
  /// Supports the first branch of an `if` or `switch`.
  public static func buildEither(first part: [Operation]) -> [Operation] { part }
  /// Supports the other branches of an `if` or `switch`.
  public static func buildEither(second part: [Operation]) -> [Operation] { part }
  /// Supports `for` loops.
  public static func buildArray(_ parts: [[Operation]]) -> [Operation] { parts.flatMap(\.self) }
  /// Supports `if #available`.
  public static func buildLimitedAvailability(_ part: [Operation]) -> [Operation] { part }
}

extension OperationBuilder {
  /// Returns the operations and their free direct and indirect dependencies, each once, dependencies first.
  ///
  /// An operation that has been started, or is in a queue or a group, is not free. The walk skips it and its
  /// dependencies. The walk takes O(n + e) and does not recurse.
  static func withDependencies(_ operations: [Operation]) -> [Operation] {
    var seen: Set<ObjectIdentifier> = []
    var result: [Operation] = []
    var path: [(operation: Operation, next: ArraySlice<Operation>)] = []
    for operation in operations where seen.insert(ObjectIdentifier(operation)).inserted {
      path.append((operation, operation.dependencies[...]))
      while let top = path.indices.last {
        guard let next = path[top].next.popFirst() else {
          result.append(path.removeLast().operation)
          continue
        }
        let isFree = (next as? AsyncOperation)?.isFree ?? next.isFreePlainOperation
        if isFree, seen.insert(ObjectIdentifier(next)).inserted { path.append((next, next.dependencies[...])) }
      }
    }
    return result
  }
}
