extension StallReport {
  /// What keeps an operation from finishing. A structure, so that causes can be added without breaking a `switch`.
  public struct Cause: RawRepresentable, Sendable, Hashable, Codable, CustomStringConvertible {
    /// Operations wait for each other in a cycle of dependencies, members, keys, slots, or the start of a group.
    public static let cycle = Cause(rawValue: "cycle")
    /// The operation was never added to a queue or a group, as far as the report can see.
    public static let notEnqueued = Cause(rawValue: "notEnqueued")
    /// The queue or the group is suspended, or its `maxConcurrentOperationCount` is 0.
    public static let suspended = Cause(rawValue: "suspended")
    /// Foundation does not consider the operation ready, although all of its dependencies have finished.
    public static let notReady = Cause(rawValue: "notReady")
    /// Another operation holds the key, or comes first in the wait queue of the key.
    public static let exclusivity = Cause(rawValue: "exclusivity")
    /// All slots of the queue or the group are in use.
    public static let saturated = Cause(rawValue: "saturated")
    /// The operation evaluates a condition.
    public static let condition = Cause(rawValue: "condition")
    /// The operation is executing.
    public static let executing = Cause(rawValue: "executing")
    /// The operation waits for its next attempt or iteration.
    public static let backingOff = Cause(rawValue: "backingOff")
    /// The operation is about to start or to finish.
    public static let transitioning = Cause(rawValue: "transitioning")

    /// The name of the cause, which is also its JSON encoding.
    public let rawValue: String
    public var description: String { rawValue }

    /// Creates a cause from its name, which may be a name of a later version.
    public init(rawValue: String) { self.rawValue = rawValue }
  }
}
