/// The holders of one key, and the operations that wait for the key: a part of ``KeyTable``.
struct KeyQueue {
  /// The identity of a queue: a key, or the use of a key among the members of one of its holders.
  struct ID: Hashable {
    let domain: ExclusivityDomain
    let key: ExclusivityKey
    /// The entry whose members share the queue. Nil for the queue of the whole program.
    var holder: Int?

    /// The queue of the whole program for the same key. The starts under a throttled key are counted there.
    var outermost: Self { holder == nil ? self : Self(domain: domain, key: key) }

    static func == (left: Self, right: Self) -> Bool {
      left.domain === right.domain && left.holder == right.holder && left.key == right.key
    }

    func hash(into hasher: inout Hasher) {
      hasher.combine(ObjectIdentifier(domain))
      hasher.combine(key)
      hasher.combine(holder)
    }
  }

  let id: ID
  /// The number of entries that claim the key, whatever their state.
  var claimCount = 0
  /// The entries that hold the key or for which it is reserved, in no order.
  private(set) var holders: [Int] = []
  /// The waiters that are served first. They are members of operations for which other waiters wait.
  var preferred = ArrayDeque<Int>()
  /// All other waiters, in the order of arrival.
  var waiting = ArrayDeque<Int>()
  /// The permitted entries that were not started in time, keyed by the queue or group that must start them.
  var overdue: [ObjectIdentifier: Set<Int>] = [:]
  /// The waiters behind an overdue entry of the same queue or group, keyed by that queue or group.
  var deferred: [ObjectIdentifier: [Int]] = [:]
  /// The number of tickets in ``preferred`` and ``waiting`` whose entries have left.
  var staleCount = 0
  /// The number of holders that a newer operation has replaced.
  var replacedCount = 0
  /// The limit of ``limitCount`` holders.
  private var limit = Int.max
  private var limitCount = 0
  /// The number of holders with each other limit, and the place of the limit in the order.
  private var otherLimits: [Int: (count: Int, place: DeadlineQueue<Int, Void>.Place)] = [:]
  private var limitOrder = DeadlineQueue<Int, Void>()

  /// The value at an index that no key uses.
  static var vacant: Self { Self(ID(domain: .shared, key: "")) }

  init(_ id: ID) { self.id = id }

  var hasWaiters: Bool { !preferred.isEmpty || !waiting.isEmpty }

  /// Whether no operation precedes a newcomer.
  var isUndisputed: Bool { !hasWaiters && overdue.isEmpty }

  var isMostlyStale: Bool { staleCount * 2 > preferred.count + waiting.count }

  /// The tickets in both wait queues, in the order in which they are served.
  var waiters: [Int] { Array(preferred.all) + Array(waiting.all) }

  /// Whether a newcomer with this limit can become a holder.
  func admits(_ limit: Int) -> Bool { holders.count < min(limit, smallestLimit) }

  /// The smallest limit among the holders.
  var smallestLimit: Int {
    min(limitCount > 0 ? limit : .max, limitOrder.earliest ?? .max)
  }

  mutating func removeFirstPreferred() {
    preferred.popFirst()
    staleCount = max(staleCount - 1, 0)
  }

  mutating func removeFirstWaiting() {
    waiting.popFirst()
    staleCount = max(staleCount - 1, 0)
  }

  /// Returns a copy that shares no storage with this queue.
  func fresh() -> Self {
    var copy = Self(id)
    (copy.claimCount, copy.staleCount, copy.replacedCount) = (claimCount, staleCount, replacedCount)
    copy.preferred = ArrayDeque(Array(preferred.all))
    copy.waiting = ArrayDeque(Array(waiting.all))
    for (host, tickets) in overdue { copy.overdue[host] = Set(tickets.map { $0 }) }
    for (host, tickets) in deferred { copy.deferred[host] = tickets.map { $0 } }
    copy.holders = holders.map { $0 }
    (copy.limit, copy.limitCount) = (limit, limitCount)
    for (limit, (count, _)) in otherLimits { for _ in 0..<count { copy.addOther(limit) } }
    return copy
  }

  /// Adds a holder.
  ///
  /// - Returns: The position of the new holder.
  mutating func add(holder: Int, limit: Int) -> Int {
    holders.append(holder)
    if limit != .max {
      if limitCount == 0 { self.limit = limit }
      if limit == self.limit { limitCount += 1 } else { addOther(limit) }
    }
    return holders.count - 1
  }

  private mutating func addOther(_ limit: Int) {
    if let (count, place) = otherLimits[limit] {
      otherLimits[limit] = (count + 1, place)
    } else {
      let place = limitOrder.place(at: limit)
      limitOrder.add((), at: place)
      otherLimits[limit] = (1, place)
    }
  }

  /// Removes a holder. The last holder moves to the vacant position.
  ///
  /// - Returns: The holder that moved, if any.
  mutating func removeHolder(at position: Int, limit: Int) -> Int? {
    if limitCount > 0, limit == self.limit {
      limitCount -= 1
    } else if let (count, place) = otherLimits[limit] {
      otherLimits[limit] = count > 1 ? (count - 1, place) : nil
      if count == 1 { _ = limitOrder.remove(place) }
    }
    let last = holders.removeLast()
    guard position < holders.count else { return nil }
    holders[position] = last
    return last
  }
}
