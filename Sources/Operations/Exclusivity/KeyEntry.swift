/// A request for one key. The claims of a claimant are requested together.
struct KeyClaim {
  var domain = ExclusivityDomain.shared
  let key: ExclusivityKey
  var limit = Int.max
  var weight = 1
  var throttles: [KeyThrottle] = []
  var policy = ExclusivityPolicy.wait
}

/// The progress of a claimant towards its keys.
enum KeyState: Hashable {
  /// Waits in the wait queues of its keys.
  case waiting
  /// May be started, and holds nothing. Until this time, no claimant behind it is called. Nil if others may be
  /// called: the time has passed, or that of another claimant of the same queue or group.
  case called(until: Int?)
  case holding
  /// Holds its keys, and is about to be cancelled because a newer claimant replaces it. Its members leave by this time,
  /// unless it goes on, as a task does.
  case replaced(until: Int)

  var isHolding: Bool { self == .holding || isReplaced }

  var isReplaced: Bool { if case .replaced = self { true } else { false } }
}

/// A claimant in the table of keys. Not generic, because the compiler accesses generic values of this size by copies.
struct KeyEntry {
  /// What a claimant takes of a use. Reading it retains nothing.
  struct Share {
    let use: Int
    let limit: Int
    let weight: Int
  }

  let ticket: KeyTicket
  /// One for each claim. The throttles of a claim are apart, because few claims have any.
  var shares: [Share] = []
  var throttled: [(use: Int, throttles: [KeyThrottle])] = []
  /// The entries of the enclosing operations, innermost first.
  let enclosing: [KeyTicket]
  /// The innermost of them that holds keys. Its members share wait queues.
  let waitQueue: Int?
  /// The queue or group that starts the claimant.
  let origin: ObjectIdentifier?
  /// Whether the claimant has been started, so that it holds its keys when it is called.
  var isStarted: Bool
  var state = KeyState.waiting
  /// How often the claimant was started after its keys had been taken.
  var refusals = 0
  var timer: ClockTimer?

  static var vacant: Self {
    Self(ticket: KeyTicket(number: -1, place: 0), enclosing: [], waitQueue: nil, origin: nil, isStarted: false)
  }
}

extension SlotList<KeyEntry> {
  func contains(_ ticket: KeyTicket) -> Bool { indices.contains(ticket.place) && self[ticket.place].ticket == ticket }

  var all: [KeyEntry] { indices.map { self[$0] }.filter { $0.ticket.number >= 0 } }
}
