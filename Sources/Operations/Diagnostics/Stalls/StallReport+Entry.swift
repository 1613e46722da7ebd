extension StallReport {
  /// The reason why one operation has not finished.
  public struct Entry: Sendable, Hashable, Codable, CustomStringConvertible {
    /// The name of the operation.
    public let operation: String
    /// The name of the operation's queue or group, if known.
    public let place: String?
    /// What keeps the operation from finishing.
    public let cause: Cause
    /// The names of the operations that this one waits for directly, such as dependencies, members, operations that
    /// hold its keys, and operations that use the slots.
    public let waitsFor: [String]
    /// The name of the operation at the end of the chain of waits, or nil if that is this operation.
    public let root: String?
    /// How long the operation has been executing or evaluating its conditions.
    ///
    /// The time is read from the system's clock, to within a few milliseconds. It is nil for an operation that has
    /// not started, and for a plain Foundation operation.
    public let elapsed: Duration?
    /// A sentence that contains all of this.
    public let description: String

    init(
      operation: String,
      place: String?,
      cause: Cause,
      waitsFor: [String],
      root: String?,
      elapsed: Duration?,
      description: String
    ) {
      self.operation = operation
      self.place = place
      self.cause = cause
      self.waitsFor = waitsFor
      self.root = root
      self.elapsed = elapsed
      self.description = description
    }

    /// Whether the operation waits for no other operation, or for itself in a cycle.
    var isRoot: Bool { waitsFor.isEmpty || (cause == .cycle && root == nil) }
  }
}

/// The elapsed time is encoded in seconds.
extension StallReport.Entry {
  /// The longest time that can be decoded. It exceeds the time in any report, and can be counted in nanoseconds.
  private static let mostSeconds = 1e9

  private enum CodingKeys: CodingKey {
    case operation, place, cause, waitsFor, root, elapsed, description
  }

  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    let seconds = try container.decodeIfPresent(Double.self, forKey: .elapsed)
    if let seconds, !(seconds.magnitude <= Self.mostSeconds) {
      throw DecodingError.dataCorruptedError(
        forKey: .elapsed,
        in: container,
        debugDescription: "\(seconds) s is too long."
      )
    }
    self.init(
      operation: try container.decode(String.self, forKey: .operation),
      place: try container.decodeIfPresent(String.self, forKey: .place),
      cause: try container.decode(StallReport.Cause.self, forKey: .cause),
      waitsFor: try container.decode([String].self, forKey: .waitsFor),
      root: try container.decodeIfPresent(String.self, forKey: .root),
      // The time was measured in whole nanoseconds.
      elapsed: seconds.map { Duration.nanoseconds(Int64(($0 * 1e9).rounded())) },
      description: try container.decode(String.self, forKey: .description)
    )
  }

  public func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(operation, forKey: .operation)
    try container.encodeIfPresent(place, forKey: .place)
    try container.encode(cause, forKey: .cause)
    try container.encode(waitsFor, forKey: .waitsFor)
    try container.encodeIfPresent(root, forKey: .root)
    try container.encodeIfPresent(elapsed.map { $0 / .seconds(1) }, forKey: .elapsed)
    try container.encode(description, forKey: .description)
  }
}
