/// The operations that hold one key, and those that wait for it: a part of a ``KeyTable``.
struct KeyLine {
  /// Which key. The members of a group that holds it use it in a line of their own.
  struct Place: Hashable {
    let domain: ExclusivityDomain
    let key: ExclusivityKey
    /// The entry whose members these are. Nil outside of all.
    var holder: Int?

    static func == (left: Self, right: Self) -> Bool {
      left.domain === right.domain && left.holder == right.holder && left.key == right.key
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(domain))
      hasher.combine(key)
      hasher.combine(holder)
    }
  }

  let place: Place
  /// How many entries stand in the line, wherever they are.
  var claimCount = 0
  /// Those that hold the key, and those that have been called and for which it is reserved. In any order.
  var holders: [Int] = []
  /// Members of holders that go first, because the others wait for those holders.
  var passing = TicketQueue()
  var waiting = TicketQueue()
  /// Called operations that have not come, by the queue or group that does not start them.
  var late: [ObjectIdentifier: [Int]] = [:]
  /// What waits behind those in the same queue or group.
  var aside: [ObjectIdentifier: [Int]] = [:]
  /// How many in ``passing`` and ``waiting`` have left.
  var staleCount = 0
  private var limit = Int.max
  private var limitCount = 0
  private var otherLimits: [Int: Int] = [:]

  init(_ place: Place) { self.place = place }

  /// Whether one more may hold the key: the number of holders stays within the smallest limit among them.
  func admits(_ limit: Int) -> Bool { holders.count < min(limit, smallestLimit) }

  /// The smallest limit among the holders.
  var smallestLimit: Int {
    let first = limitCount > 0 ? limit : .max
    return otherLimits.isEmpty ? first : min(first, otherLimits.keys.min() ?? .max)
  }

  mutating func add(_ limit: Int) {
    if limit == .max { return }
    if limitCount == 0 { self.limit = limit }
    if limit == self.limit { limitCount += 1 } else { otherLimits[limit, default: 0] += 1 }
  }

  mutating func remove(_ limit: Int) {
    if limit == .max { return }
    if limitCount > 0, limit == self.limit {
      limitCount -= 1
    } else if let count = otherLimits[limit] {
      otherLimits[limit] = count > 1 ? count - 1 : nil
    }
  }
}

/// Tickets in the order in which they are served.
struct TicketQueue {
  private var tickets: [Int] = []
  private var head = 0

  var isEmpty: Bool { head == tickets.count }
  var count: Int { tickets.count - head }
  var first: Int? { isEmpty ? nil : tickets[head] }
  var all: ArraySlice<Int> { tickets[head...] }

  init(_ tickets: [Int] = []) { self.tickets = tickets }

  mutating func append(_ ticket: Int) { tickets.append(ticket) }

  mutating func removeFirst() {
    head += 1
    guard head == tickets.count || (head >= 64 && head * 2 >= tickets.count) else { return }
    tickets.removeFirst(head)
    head = 0
  }
}
