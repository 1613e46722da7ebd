public import Foundation

/// Collects the members of a group from the lines between its braces.
///
/// ```swift
/// GroupOperation("Import") {
///   download ==> parse ==> store     // takes in all three
///   for page in pages { fetch(page) }
///   if cleansUp { store ==> CleanUp() }
/// }
/// ```
///
/// An operation brings along what it waits for, directly or not, as long as that has not started and is not in a queue or
/// group already. One that is named repeatedly counts once. What a plain Foundation operation is in cannot be seen, nor
/// that one of ours was enqueued by a verb of Foundation's own: where a member waits for such an operation, give the group
/// an array instead.
@resultBuilder
public enum OperationBuilder {
  public static func buildExpression(_ operation: Operation) -> [Operation] { [operation] }
  public static func buildExpression(_ operations: [Operation]) -> [Operation] { operations }
  public static func buildExpression(_ nothing: ()) -> [Operation] { [] }
  public static func buildBlock(_ parts: [Operation]...) -> [Operation] { parts.flatMap(\.self) }
  public static func buildOptional(_ part: [Operation]?) -> [Operation] { part ?? [] }
  public static func buildEither(first part: [Operation]) -> [Operation] { part }
  public static func buildEither(second part: [Operation]) -> [Operation] { part }
  public static func buildArray(_ parts: [[Operation]]) -> [Operation] { parts.flatMap(\.self) }
  public static func buildLimitedAvailability(_ part: [Operation]) -> [Operation] { part }
}
