/// An event with an identity, so that it can be withdrawn or a caller can wait for it.
///
/// The mutable state belongs to the scheduler's ``Mailbox`` and must be accessed only under the mailbox's lock.
final class EventTicket: @unchecked Sendable {
  /// A closure that runs the event, or receives the reason why the event will not run.
  typealias Body = @Sendable (_ refusal: (any Error)?) -> Void

  /// The position of the event on its way through the mailbox.
  enum Place {
    case new
    /// Waits for its time.
    case delayed(DeadlineQueue<Duration, EventTicket>.Place)
    /// Waits for room.
    case suspended
    /// Waits to run.
    case waiting
    /// Running, finished, or withdrawn.
    case gone
  }

  let origin: EventOrigin
  /// The key, or nil. The event replaces a waiting event that has the same key.
  let key: EventKey?
  /// Whether the event counts toward the scheduler's capacity.
  let isBounded: Bool
  /// Whether the event may wait for room.
  let maySuspend: Bool
  /// The closure to call when the event is accepted after waiting for room.
  let onAccept: (@Sendable () -> Void)?
  /// The wait whose body the event runs, or nil.
  let link: WaitLink?

  var place = Place.new
  var body: Body?

  init(
    _ origin: EventOrigin,
    key: EventKey? = nil,
    isBounded: Bool = false,
    maySuspend: Bool = false,
    link: WaitLink? = nil,
    onAccept: (@Sendable () -> Void)? = nil
  ) {
    self.origin = origin
    self.key = key
    self.isBounded = isBounded
    self.maySuspend = maySuspend
    self.link = link
    self.onAccept = onAccept
  }

  var isWaiting: Bool { if case .waiting = place { true } else { false } }
  var isGone: Bool { if case .gone = place { true } else { false } }

  /// Returns a body that runs an event and ignores refusals.
  static func body(of event: @escaping @Sendable () -> Void) -> Body { { refusal in if refusal == nil { event() } } }

  /// Returns the refusal as a failure, or runs `body` and returns its result.
  static func outcome<T>(_ refusal: (any Error)?, _ body: () throws -> T) -> Result<T, any Error> {
    refusal.map { .failure($0) } ?? Result { try body() }
  }

  /// Marks the event as gone, and removes its body.
  ///
  /// - Returns: The body. The caller must call or release it after releasing the lock.
  func leave() -> Body? {
    place = .gone
    return body.take()
  }
}

/// The key under which a scheduler, or one of its objects, coalesces events.
struct EventKey: Hashable {
  let object: ObjectIdentifier?
  let name: String
}

/// The source location at which an event was scheduled or a property was declared.
public struct EventOrigin: Sendable, CustomStringConvertible {
  /// The module and file, as in `#fileID`.
  public let file: StaticString
  /// The line, starting at 1.
  public let line: UInt

  /// Creates an origin, by default the location of the call.
  public init(file: StaticString = #fileID, line: UInt = #line) {
    self.file = file
    self.line = line
  }

  public var description: String { "\(file):\(line)" }
}
