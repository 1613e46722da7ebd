/// An event that can be withdrawn or waited for. Its stage is accessed under the lock of the scheduler's ``Mailbox``.
final class EventTicket: @unchecked Sendable {
  /// A closure that runs the event, or receives the reason why the event will not run.
  typealias Body = @Sendable (_ refusal: (any Error)?) -> Void
  typealias Place = DeadlineQueue<Duration, EventTicket>.Place

  enum Capacity {
    case exempt
    /// The event counts, and is refused if the scheduler is full.
    case counted
    /// The event counts, and may wait for room. `onAccept` is called if it is accepted after such a wait.
    case suspending(onAccept: (@Sendable () -> Void)? = nil)
  }

  enum Stage {
    case new
    case delayed(Place, Body)
    case suspended(Place, Body)
    case waiting(Body)
    /// Running, finished, or withdrawn.
    case gone
  }

  var origin: EventOrigin
  let key: EventKey?
  let capacity: Capacity

  var stage = Stage.new

  init(_ origin: EventOrigin, key: EventKey? = nil, capacity: Capacity = .exempt) {
    self.origin = origin
    self.key = key
    self.capacity = capacity
  }

  var isCounted: Bool { if case .exempt = capacity { false } else { true } }
  var isWaiting: Bool { if case .waiting = stage { true } else { false } }
  var isGone: Bool { if case .gone = stage { true } else { false } }

  static func body(of event: __owned @escaping @Sendable () -> Void) -> Body {
    { refusal in if refusal == nil { event() } }
  }

  static func outcome<T>(_ refusal: (any Error)?, _ body: () throws -> T) -> Result<T, any Error> {
    if let refusal { return .failure(refusal) }
    do { return .success(try body()) } catch { return .failure(error) }
  }

  /// Marks the event as gone, and returns its body, which the caller must call or release after releasing the lock.
  func leave() -> Body? {
    defer { stage = .gone }
    switch stage {
    case .delayed(_, let body), .suspended(_, let body), .waiting(let body): return body
    case .new, .gone: return nil
    }
  }
}

struct EventKey: Hashable {
  let object: ObjectIdentifier?
  let name: String
}
