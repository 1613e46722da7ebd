/// What a producer does to a home, an object that lives on a scheduler.
struct SoakEvent: Sendable {
  enum Kind: Sendable {
    case schedule, coalesced, object, operation, asynchronousOperation
    case delayed(ticks: Int, isCancelled: Bool)
    case run(isCancelled: Bool)
    case send(isCancelled: Bool)
    case actor
    /// Waits there, and from there for the next, and so on.
    case wait([Int])
    /// Its outcome goes to another.
    case delivered(to: Int)
  }

  let home: Int
  let kind: Kind
}

/// How a home's scheduler is, and when it is shut down, if ever.
struct SoakHomePlan: Sendable {
  enum End: Sendable { case drain, discard }

  var capacity: Int?
  /// Which of the policies.
  var policy = 0
  /// After how many events of the first producer, and how.
  var shutdown: (after: Int, end: End)?

  /// Whether everything that is scheduled there is run.
  var takesAll: Bool { capacity == nil && shutdown == nil }
}

/// Somebody who asks for what is shared under a key.
struct SoakCaller: Sendable {
  let key: Int
  let tick: Int
  let cancelledAt: Int?
}
