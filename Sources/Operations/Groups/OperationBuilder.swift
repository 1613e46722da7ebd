public import Foundation

/// Collects the members of a group from the lines between its braces.
///
/// ```swift
/// let importer = GroupOperation("Import") {
///   download ==> parse ==> store  // takes in all three
///   for page in pages { fetch(page) }
///   if cleansUp { store ==> CleanUp() }
/// }
/// ```
///
/// An operation brings along what it waits for, directly or not, as long as that has not started and is not in a queue
/// or group already. One that is named repeatedly counts once. What a plain Foundation operation is in cannot be seen,
/// nor that one of ours was enqueued by a verb of Foundation's own: where a member waits for such an operation, give
/// the group an array instead.
@resultBuilder
public enum OperationBuilder {
  /// An operation, with what it was chained to by `==>` in the braces.
  public static func buildExpression(_ operation: Operation) -> [Operation] { [operation] }
  /// An array of operations, each with what it was chained to.
  public static func buildExpression(_ operations: [Operation]) -> [Operation] { operations }
  /// A statement that has no operation, as `print()`.
  public static func buildExpression(_ nothing: ()) -> [Operation] { [] }
  /// One after the other.
  public static func buildBlock(_ parts: [Operation]...) -> [Operation] { parts.flatMap(\.self) }
  /// An `if` without `else`.
  public static func buildOptional(_ part: [Operation]?) -> [Operation] { part ?? [] }
  /// The first branch of an `if` or `switch`.
  public static func buildEither(first part: [Operation]) -> [Operation] { part }
  /// Another branch.
  public static func buildEither(second part: [Operation]) -> [Operation] { part }
  /// A `for` loop.
  public static func buildArray(_ parts: [[Operation]]) -> [Operation] { parts.flatMap(\.self) }
  /// An `if #available`.
  public static func buildLimitedAvailability(_ part: [Operation]) -> [Operation] { part }
}
