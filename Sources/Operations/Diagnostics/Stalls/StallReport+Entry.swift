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

    /// Whether it waits for no other operation, or for itself in a circle.
    var isRoot: Bool { waitsFor.isEmpty || (cause == .cycle && root == nil) }
  }
}

/// The elapsed time is encoded in seconds.
extension StallReport.Entry {
  /// More than any report has, and few enough to count in nanoseconds.
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
      // Whole nanoseconds, as the time was measured in.
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
