extension StallReport {
  /// What keeps an operation from getting on. A struct, so that causes can be added without breaking a `switch` of
  /// yours.
  public struct Cause: RawRepresentable, Sendable, Hashable, Codable, CustomStringConvertible {
    /// Operations wait for each other in a circle, by whatever they wait: for ends, keys, slots or the beginning of a
    /// group.
    public static let circle = Cause(rawValue: "circle")
    /// The operation was never added to a queue or a group, as far as can be seen.
    public static let notAdded = Cause(rawValue: "notAdded")
    /// The queue or the group is suspended, or set to execute no operation at all.
    public static let suspended = Cause(rawValue: "suspended")
    /// Foundation does not hold the operation for ready, though all it depends on has finished.
    public static let notReady = Cause(rawValue: "notReady")
    /// Another operation has the key, or stands before this one in the line for it.
    public static let exclusivity = Cause(rawValue: "exclusivity")
    /// Others take all the slots of the queue or the group.
    public static let saturated = Cause(rawValue: "saturated")
    /// A condition is being evaluated.
    public static let condition = Cause(rawValue: "condition")
    /// An operation is executing, and has not finished.
    public static let executing = Cause(rawValue: "executing")
    /// An operation that tries again waits for its next attempt.
    public static let pausing = Cause(rawValue: "pausing")
    /// Nothing but a thread that takes it up, or one that is just carrying out its end.
    public static let moving = Cause(rawValue: "moving")

    /// How the cause is written, also in JSON.
    public let rawValue: String
    public var description: String { rawValue }

    /// - Parameter rawValue: One of those above, or of a version to come.
    public init(rawValue: String) { self.rawValue = rawValue }
  }
}
