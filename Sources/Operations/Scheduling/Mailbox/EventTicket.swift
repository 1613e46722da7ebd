/// An event that can be taken back, or that somebody waits for.
///
/// Its state belongs to the ``Mailbox`` of its scheduler and is touched under that one's lock only.
final class EventTicket: @unchecked Sendable {
  /// Runs the event, or tells who waits for it why it is not run.
  typealias Body = @Sendable (_ refusal: (any Error)?) -> Void

  enum Place {
    case new
    /// For a time to come.
    case delayed(DeadlineQueue<Duration, EventTicket>.Place)
    /// Until there is room.
    case atDoor
    case waiting
    /// Being run, over, or taken back.
    case gone
  }

  let origin: EventOrigin
  /// Events of one name make each other superfluous.
  let key: EventKey?
  /// Whether it counts in the scheduler's capacity, if there is one, and whether it may wait until there is room.
  let isBounded: Bool
  let maySuspend: Bool
  /// Called when it is accepted after it has waited at the door.
  let onAccept: (@Sendable () -> Void)?
  /// Who waits for it, blocked.
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

  /// For an event that nobody waits for.
  static func body(of event: @escaping @Sendable () -> Void) -> Body { { refusal in if refusal == nil { event() } } }

  /// What comes of an event that returns something.
  static func outcome<T>(_ refusal: (any Error)?, _ body: () throws -> T) -> Result<T, any Error> {
    refusal.map { .failure($0) } ?? Result { try body() }
  }

  /// Takes the body out, which is the caller's to call, or to let go of, without the lock.
  func leave() -> Body? {
    place = .gone
    return body.take()
  }
}

/// A name for events, on a scheduler or for one of its objects.
struct EventKey: Hashable {
  let object: ObjectIdentifier?
  let name: String
}

/// Where in the program an event was scheduled, or a property declared.
public struct EventOrigin: Sendable, CustomStringConvertible {
  /// Module and file.
  public let file: StaticString
  /// The line in it; the first is 1.
  public let line: UInt

  /// The place where this is written.
  public init(file: StaticString = #fileID, line: UInt = #line) {
    self.file = file
    self.line = line
  }

  public var description: String { "\(file):\(line)" }
}
