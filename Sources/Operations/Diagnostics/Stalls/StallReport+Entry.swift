extension StallReport {
  /// Why one operation does not get on.
  public struct Entry: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The operation's name.
    public let operation: String
    /// The name of the queue or the group it is in, if that is known.
    public let place: String?
    /// What is at the bottom of it.
    public let cause: Cause
    /// The names of what it waits for itself: operations that it depends on, that have its keys, that take the slots.
    public let waitsFor: [String]
    /// The name of the operation at the very bottom of it, if that is another one.
    public let root: String?
    /// How long it has been executing, or its conditions have been evaluated, to within a few milliseconds of the
    /// system's time. Not known of plain Foundation operations.
    public let elapsed: Duration?
    /// One sentence that says all of this.
    public let description: String

    /// Whether it waits for no other operation, or for itself in a circle.
    var isRoot: Bool { waitsFor.isEmpty || (cause == .circle && root == nil) }
  }
}
