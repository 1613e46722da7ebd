import Foundation

/// A request for one key, or for a start under it within an interval. The claims of a claimant are requested together.
struct KeyClaim {
  var domain = ExclusivityDomain.shared
  let key: ExclusivityKey
  var limit = Int.max
  var weight = 1
  /// The interval of a throttle, within which claimants whose weights add up to the limit may start.
  var interval: Duration?
  var policy = ExclusivityPolicy.wait
}

/// The number of a claimant in the order of arrival, and its place in the table of keys.
struct KeyTicket: Hashable, Comparable, Sendable {
  let number: Int
  let place: Int

  static func < (left: Self, right: Self) -> Bool { left.number < right.number }

  func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

enum KeyState: Hashable {
  /// Has its number, but waits for no key: it backs off, or waits for a new dependency.
  case away
  case waiting
  /// Its turn has come, and it holds nothing. Until this time, or the answer of its group, no claimant behind it is called.
  /// Nil if it yields, because its queue or group is full or suspended.
  case called(until: Int?)
  /// Holds its keys and, as a member, a slot.
  case holding
  /// Holds its keys, and is about to be cancelled because a newer claimant replaces it.
  case replaced
  /// Has ended. Its keys are held for those that still use them inside it.
  case lending

  var isHolding: Bool {
    switch self {
    case .away, .waiting, .called: false
    case .holding, .replaced, .lending: true
    }
  }

  var isCalled: Bool { if case .called = self { true } else { false } }
}

/// What starts a claimant when its keys admit it.
enum KeyPlace: Hashable {
  /// It has been started, or is a task, and takes its keys when its turn comes.
  case started
  case queue(ObjectIdentifier)
  case group(ObjectIdentifier)
}

/// A claimant in the table of keys. Not generic, because the compiler accesses generic values of this size by copies.
struct KeyEntry {
  /// What a claimant takes of a use. Reading it retains nothing.
  struct Share {
    let use: Int
    let limit: Int
    let weight: Int
    /// The time after which the start of a throttled claimant leaves the use. Others leave at their end.
    var interval: Duration?
  }

  /// The place in all wait queues.
  typealias Rank = ArrivalRank<KeyTicket>

  /// A part of the wait queue of a use. Within it, no claimant passes another.
  struct Line: Hashable {
    let place: KeyPlace
    /// The innermost holder around the claimants.
    let holder: KeyTicket?
  }

  var rank: Rank
  /// That of a member's arrival in its group.
  var number = 0
  var shares: [Share] = []
  /// The entries of the enclosing operations, innermost first.
  let enclosing: [KeyTicket]
  /// The innermost of them that holds keys.
  let holder: KeyTicket?
  var place: KeyPlace
  var state = KeyState.away
  /// The highest priority of a task that waits for the claimant, if it is above the default, or 0.
  var lent: UInt8 = 0
  /// The number of claims of others that use keys of this holder.
  var loans = 0

  var ticket: KeyTicket { rank.ticket }

  var line: Line { Line(place: place, holder: holder) }

  static var vacant: Self {
    Self(rank: Rank(priority: 0, ticket: KeyTicket(number: -1, place: 0)), enclosing: [], holder: nil, place: .started)
  }
}

extension SlotList<KeyEntry> {
  func contains(_ ticket: KeyTicket) -> Bool { indices.contains(ticket.place) && self[ticket.place].ticket == ticket }

  var all: [KeyEntry] { indices.map { self[$0] }.filter { $0.ticket.number >= 0 } }
}
